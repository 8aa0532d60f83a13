"""The number of examples of Hypothesis, by `RESERVER_HYPOTHESIS`.

`brief` (`make check`) and `quick` draw the same examples each time, so that no change fails by
an unlucky draw. `wide` and `fuzz` (`make release-check`) draw others, by a seed that is printed.
"""

import os

from hypothesis import HealthCheck, settings

_SLOW_ONLY = [HealthCheck.too_slow]


def load_profile() -> None:
    """Have Hypothesis draw as the environment wants."""
    for profile, examples, steps in (
        ("brief", 25, 30),
        ("quick", 60, 30),
        ("wide", 1000, 40),
        ("fuzz", 20_000, 60),
    ):
        settings.register_profile(
            profile,
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=profile in {"brief", "quick"},
            print_blob=True,
            suppress_health_check=_SLOW_ONLY,
        )
    settings.load_profile(os.environ.get("RESERVER_HYPOTHESIS", "quick"))
