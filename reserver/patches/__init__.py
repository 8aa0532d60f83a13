"""SchedPatches: which pods they match, how they merge, and how many they may patch."""
