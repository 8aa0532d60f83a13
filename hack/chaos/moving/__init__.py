"""Storms of moves on the real control plane: how long pods are without a place."""
