"""Time that ignores jumps of the wall clock, and moments of which one can tell the later.

Reservations expire at moments of the wall clock, and wall clocks jump: a virtual machine is
resumed, NTP corrects what was wrong for days. Believing a jump at once would let go of everything
that is held, or hold on to what is long over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self


class Moment(float):
    """Unix seconds, and how often the clock had been set back by then.

    A clock that is set back shows less than before, and a moment that is over shows less, too. Only
    who reads the clock can tell one from the other, so the clock says it with each moment. A number
    that says nothing of it is of a clock that was never set back.

    Attributes:
        set_back: how often it was.
    """

    __slots__ = ("set_back",)

    set_back: int

    def __new__(cls, at: float, set_back: int = 0) -> Self:
        """Make a moment of unix seconds."""
        moment = super().__new__(cls, at)
        moment.set_back = set_back
        return moment

    @classmethod
    def of(cls, at: float) -> Moment:
        """Return a number as a moment."""
        return at if isinstance(at, Moment) else Moment(at)

    def comes_after(self, other: Moment) -> bool:
        """Return whether this is later; what the clock showed before it was set back is not."""
        return (self.set_back, self) > (other.set_back, other)


PROBATION_S = 60.0
"""How long a jump has to last before it is believed, in seconds."""

TOLERANCE_S = 1.0
"""Differences below this, in seconds, are drift: they are followed at once, but never backwards."""


class SteadyClock:
    """Unix seconds that run on evenly and follow the wall clock.

    What it guarantees: a jump of the wall clock by more than `TOLERANCE_S` changes nothing for
    `PROBATION_S`; if the wall clock has jumped back by then, it never changes anything. After that
    the wall clock is believed, in either direction. Between two such moments time never goes back,
    and each moment says how often it has (`Moment`). A second jump begins a probation of its own.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Start from what the wall clock says; `monotonic` is never set back, in seconds.

        Best one that goes on while the machine is suspended (`elapsed`): then waking is no jump.
        """
        self._wall = wall
        self._monotonic = monotonic
        self._offset_s = wall() - monotonic()
        self._doubted_since = 0.0
        self._doubted_s = 0.0  # By how much the wall clock jumped; 0 if it did not.
        self._set_back = 0

    def __call__(self) -> Moment:
        """Return unix seconds."""
        tick = self._monotonic()
        ahead_s = self._wall() - tick - self._offset_s
        if abs(ahead_s) <= TOLERANCE_S:
            self._doubted_s = 0.0
            self._offset_s += max(ahead_s, 0.0)
        elif not self._doubted_s or abs(ahead_s - self._doubted_s) > TOLERANCE_S:
            self._doubted_since, self._doubted_s = tick, ahead_s
        elif tick - self._doubted_since >= PROBATION_S:
            self._doubted_s = 0.0
            self._offset_s += ahead_s
            self._set_back += ahead_s < 0
        return Moment(tick + self._offset_s, self._set_back)


def elapsed() -> float:
    """Return seconds that no jump of the clock disturbs and, on Linux, no suspension stops."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
