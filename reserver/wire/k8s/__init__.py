"""Objects of Kubernetes itself."""
