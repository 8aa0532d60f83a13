"""Where reservations are written: ConfigMaps and Reservation objects, behind one interface."""
