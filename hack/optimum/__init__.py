"""Plans compared with the optimum, on random clusters with constraints."""
