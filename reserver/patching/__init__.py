"""SchedPatches as values: which pods they match, how they merge, and how many they may patch."""
