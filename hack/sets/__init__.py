"""Many clients create sets on a cluster that is full: never too much held, no half set."""
