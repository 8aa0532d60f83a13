"""Primitives that every part uses: time, pacing, quarantine, back-off, fairness."""
