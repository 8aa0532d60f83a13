"""Reservations: spec, owner matching, phases, and the ledger of all holds. Pure."""
