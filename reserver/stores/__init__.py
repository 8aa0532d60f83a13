"""The stores of reservations: ConfigMaps and Reservation objects, behind one interface."""
