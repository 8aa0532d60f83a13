"""SchedPatches: watched, counted in their status."""
