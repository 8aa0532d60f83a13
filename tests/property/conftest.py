"""Hypothesis profiles: a quick one by default, `RESERVER_HYPOTHESIS=fuzz` for a long run."""

import os

from hypothesis import HealthCheck, settings

_SLOW_ONLY = [HealthCheck.too_slow]

settings.register_profile(
    "quick",
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=_SLOW_ONLY,
)
settings.register_profile(
    "fuzz",
    max_examples=20_000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=_SLOW_ONLY,
)
settings.load_profile(os.environ.get("RESERVER_HYPOTHESIS", "quick"))
