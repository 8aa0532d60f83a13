"""Scenarios that run beside the others.

What Reserver's own account asks for in them does not count for its rights (test_rights.py).
"""
