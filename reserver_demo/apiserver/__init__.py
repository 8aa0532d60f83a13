"""A subset of the Kubernetes API server, in memory."""
