"""Compares `--compat upstream` with kubernetes-sigs/descheduler's own code."""
