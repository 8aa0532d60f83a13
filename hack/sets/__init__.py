"""Clients that race for the room of full nodes with sets of reservations, and an auditor."""
