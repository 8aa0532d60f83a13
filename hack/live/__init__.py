"""Measures on the real control plane, for which the embedded one is no evidence."""
