"""Reservations in ConfigMaps."""
