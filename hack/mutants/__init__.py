"""Mutants: faults that are put into Reserver one at a time, to see which tests notice."""
