"""Decides whether a pod fits on a node next to the holds, and the best place. Pure."""
