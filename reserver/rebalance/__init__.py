"""Finds pods that should move, and their target nodes."""
