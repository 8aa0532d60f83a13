"""A storm on the real control plane: Reserver's promises while its dependencies fail."""
