"""Kubernetes objects: decoded from JSON to values, and encoded."""
