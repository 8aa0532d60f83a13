"""The cost of a start of Reserver with the real API server of a large cluster."""
