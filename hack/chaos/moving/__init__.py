"""Storms of moves on the real control plane, which measure the time of pods without a node."""
