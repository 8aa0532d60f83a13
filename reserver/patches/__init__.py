"""SchedPatches: their selectors, merges and counts of patched pods."""
