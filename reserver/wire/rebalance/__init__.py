"""Reads what rebalancing needs: objects of a cluster, and policies."""
