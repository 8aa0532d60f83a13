"""Status of reservations, as Reserver writes it back."""
