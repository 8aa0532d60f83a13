"""Moves that hold their seat: the model, the state machine and the arbitration."""
