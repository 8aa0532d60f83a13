"""Scenarios that run apart from the others.

Requests of Reserver's own account in them do not count for its rights (test_rights.py).
"""
