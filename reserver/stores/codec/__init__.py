"""Specs, quotas and documents as people and controllers write them, in each of their forms."""
