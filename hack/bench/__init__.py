"""Benchmarks of Reserver, each number next to its floor; `make bench` prints the tables."""
