"""Presses Ctrl-C at random moments, for each command that `reserver` has."""
