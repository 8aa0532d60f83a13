"""Scenarios whose requests no audit log is judged by: they run beside the others."""
