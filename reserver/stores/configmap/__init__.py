"""The store of reservations in ConfigMaps."""
