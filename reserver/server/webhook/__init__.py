"""Webhooks: what the API server asks before it creates or resizes a pod."""
