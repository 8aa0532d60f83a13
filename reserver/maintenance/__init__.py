"""MaintenanceWindows: empty nodes before their maintenance, a few at a time."""
