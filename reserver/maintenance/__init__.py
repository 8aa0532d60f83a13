"""MaintenanceWindows: nodes are emptied before their maintenance, a few at a time."""
