"""Whether this process stood still, stopped or without a processor, while the cluster went on."""

from __future__ import annotations

import time
from collections.abc import Callable

BEAT_S = 0.1
"""How often it is looked after, in seconds."""

STOOD_STILL_S = 1.0
"""From so long between two looks on this process stood still, in seconds."""


class Pulse:
    """Tells whether this process stood still.

    What watches had to tell meanwhile is not read yet when it goes on, or has not come yet, and the
    first to go on may be a call that is to be decided. So whoever decides looks, too.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin to look; `now` is seconds that go on while the process stands still."""
        self._now = now
        self._looked_at = now()

    def stood_still(self) -> float:
        """Return for how long it stood still since somebody looked, in seconds; 0 if it did not."""
        before, self._looked_at = self._looked_at, self._now()
        gap_s = self._looked_at - before
        return gap_s if gap_s > STOOD_STILL_S else 0.0
