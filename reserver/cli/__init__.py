"""The `reserver` command."""
