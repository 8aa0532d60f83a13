"""Plans beside the optimum, on random clusters with constraints."""
