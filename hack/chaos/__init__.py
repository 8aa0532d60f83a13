"""A storm on the real control plane: reserver's promises while everything around it fails."""
