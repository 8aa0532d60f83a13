"""What Reserver writes back: what became of a reservation."""
