"""The store of reservations as Reservation objects."""
