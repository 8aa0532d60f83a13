"""Reservations as objects of their own."""
