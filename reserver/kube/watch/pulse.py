"""Whether this process stood still (stopped, or without CPU) while the cluster went on."""

from __future__ import annotations

import time
from collections.abc import Callable

BEAT_S = 0.1
"""How often it looks, in seconds."""

STOOD_STILL_S = 1.0
"""With this long between two looks, the process stood still, in seconds."""


class Pulse:
    """Tells whether this process stood still.

    When it goes on, it has not yet read what the watches sent meanwhile, and the first thing to run
    may be a call. So calls look, too.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin to look; `now` is seconds that go on while the process stands still."""
        self._now = now
        self._looked_at = now()

    def stood_still(self) -> float:
        """Return how long it stood still since the last look, in seconds; 0 if it did not."""
        before, self._looked_at = self._looked_at, self._now()
        gap_s = self._looked_at - before
        return gap_s if gap_s > STOOD_STILL_S else 0.0
