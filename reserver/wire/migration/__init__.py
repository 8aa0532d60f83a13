"""PodMoves, and the Reservations that hold their seats: bytes to values and back."""
