"""Rebalancing on the API server: what is read for it, and evictions."""
