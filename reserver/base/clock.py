"""A clock that ignores short jumps of the wall clock, and moments in the order of reading.

Reservations expire at moments of the wall clock, and wall clocks jump: a virtual machine is
resumed, or NTP corrects an error of days. Following a jump at once would release every hold, or
keep holds that expired long ago.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self


class Moment(float):
    """Unix seconds, with the number of times that the clock had been set back by then.

    After a clock is set back it shows an earlier time, as a moment of the past does. Only the
    reader of the clock can tell both cases apart, so each moment carries the count. A plain number
    stands for a clock that was never set back.

    Attributes:
        set_back: corrections of the clock backwards before this moment.
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
        """Return whether this moment is later; readings before a clock was set back are earlier."""
        return (self.set_back, self) > (other.set_back, other)


def is_ahead(at: float, now: float, longest_s: float) -> bool:
    """Return whether a planned moment is yet to come.

    Args:
        at: the planned moment, in unix seconds.
        now: unix seconds.
        longest_s: seconds, the farthest that such a moment is planned ahead. A moment farther ahead
            was planned before the clock was set back, and is over.
    """
    return 0 < at - now <= longest_s


PROBATION_S = 60.0
"""Seconds that a jump must last before the clock follows it."""

TOLERANCE_S = 1.0
"""Smaller differences, in seconds, are drift: followed at once, but never backwards."""


class SteadyClock:
    """Unix seconds that advance evenly and follow the wall clock.

    A jump of the wall clock by more than `TOLERANCE_S` changes nothing for `PROBATION_S`; if the
    wall clock has jumped back by then, the jump never changes anything. After that this clock
    follows the wall clock, in either direction. Between two such corrections time never goes back,
    and each moment counts the corrections backwards (`Moment`). A second jump begins its own
    probation.
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Start at the time of the wall clock; `monotonic` returns seconds, never set back.

        `monotonic` should advance while the machine is suspended (`elapsed`): waking is then no
        jump.
        """
        self._wall = wall
        self._monotonic = monotonic
        self._offset_s = wall() - monotonic()
        self._jumped_at = 0.0
        self._jump_s = 0.0  # Seconds of the jump on probation; 0 without one.
        self._set_back = 0

    def __call__(self) -> Moment:
        """Return unix seconds."""
        tick = self._monotonic()
        ahead_s = self._wall() - tick - self._offset_s
        if abs(ahead_s) <= TOLERANCE_S:
            self._jump_s = 0.0
            self._offset_s += max(ahead_s, 0.0)
        elif not self._jump_s or abs(ahead_s - self._jump_s) > TOLERANCE_S:
            self._jumped_at, self._jump_s = tick, ahead_s
        elif tick - self._jumped_at >= PROBATION_S:
            self._jump_s = 0.0
            self._offset_s += ahead_s
            self._set_back += ahead_s < 0
        return Moment(tick + self._offset_s, self._set_back)


_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Return monotonic seconds; on Linux they include the time of a suspended machine."""
    return time.clock_gettime(_ELAPSED)
