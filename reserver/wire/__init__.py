"""Bytes to values and back: Kubernetes JSON, extender JSON, the forms of the store. Pure."""
