"""Objects of Kubernetes itself: bytes to values and back."""
