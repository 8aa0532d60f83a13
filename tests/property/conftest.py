"""Hypothesis profiles: `RESERVER_HYPOTHESIS=brief` for `make check`, `fuzz` for a long run."""

import os

from hypothesis import HealthCheck, settings

_SLOW_ONLY = [HealthCheck.too_slow]

for profile, examples, steps in (("brief", 25, 30), ("quick", 60, 30), ("fuzz", 20_000, 60)):
    settings.register_profile(
        profile,
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=_SLOW_ONLY,
    )
settings.load_profile(os.environ.get("RESERVER_HYPOTHESIS", "quick"))
