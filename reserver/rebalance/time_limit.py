"""The time limit of a search for a better plan, by an injected clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SECONDS = 5.0
"""Default time limit of a search, in seconds."""


class TimeLimit(NamedTuple):
    """When a search ends.

    Attributes:
        clock: returns the time in seconds; never goes back.
        until: by that clock.
    """

    clock: Callable[[], float]
    until: float

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float]) -> TimeLimit:
        """Return the limit so many seconds from now."""
        return cls(clock, clock() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left; 0 after the limit."""
        return max(self.until - self.clock(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.clock() >= self.until

    def share(self, share: float) -> TimeLimit:
        """Return the limit after a share of the time that is left."""
        return TimeLimit(self.clock, self.clock() + self.left * share)

    def at_most(self, seconds: float) -> TimeLimit:
        """Return this limit, or the one so many seconds from now if that is earlier."""
        return TimeLimit(self.clock, min(self.until, self.clock() + seconds))
