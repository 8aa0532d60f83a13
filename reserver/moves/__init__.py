"""Moves that hold their seat: what a move is, how it goes on, and which go on now."""
