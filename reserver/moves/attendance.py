"""Since when this process attends to moves: while it is away, no replacement can land."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

AWAY_S = 60.0
"""A longer time between two decisions, in seconds, means that this process was away, or could not
decide, or that the clock was set. While a pod lands, decisions are seconds apart."""


@dataclass(slots=True)
class Attendance:
    """When this process could first decide, and has decided since without a longer gap.

    Attributes:
        since: that moment, unix seconds.
        last: the last decision, unix seconds.
    """

    since: float = 0.0
    last: float = -inf

    def at(self, now: float) -> float:
        """Note a decision at `now` (unix seconds); return since when they are made."""
        if not 0 <= now - self.last <= AWAY_S:
            self.since = now
        self.last = now
        return self.since
