"""Measures what reserver costs, each number beside its floor; `make bench` prints the tables."""
