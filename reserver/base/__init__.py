"""Primitives for every package: clocks, schedules, pacing, quarantine, back-off, fairness."""
