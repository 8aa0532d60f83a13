"""Pacing: a long pass gives way, so that no call waits; a failed attempt waits to be repeated."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

TURN_S = 0.001
"""How long a pass works before other work gets its turn, in seconds.

Its last step may take as long again; together they must end within five milliseconds.
"""

_REST = 3
"""A pass rests this many times as long as it worked, so it takes at most a quarter of the time."""

_ROUNDS = 5
"""So often the loop goes round between two turns: to read a call, to decide and to answer it are
steps of their own, and each would wait for another turn."""

T = TypeVar("T")

Steps = Generator[None, None, None]
"""Work that may take long, and lets other work run between its steps."""


class _Row:
    """The passes that have given way on one event loop; every few iterations one of them resumes.

    If all did, a call would wait for a turn of each.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a turn."""
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next, loop, _ROUNDS)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop, rounds: int) -> None:
        if rounds:
            loop.call_soon(self._next, loop, rounds - 1)
            return
        turn = self._waiting.popleft()
        if not turn.done():  # Otherwise the pass was cancelled.
            turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._next, loop, _ROUNDS)


_rows: WeakKeyDictionary[asyncio.AbstractEventLoop, _Row] = WeakKeyDictionary()


class Pacer:
    """One pass over many objects, which gives way to other work every few milliseconds.

    Attributes:
        turns: how often it has given way; what was read in another turn may be out of date.
    """

    def __init__(self, turn_s: float = TURN_S, timer: Callable[[], float] = perf_counter) -> None:
        """Begin a turn.

        Args:
            turn_s: how long a turn is, in seconds.
            timer: monotonic seconds.
        """
        self._turn_s = turn_s
        self._timer = timer
        self._began = timer()
        self._worked_s = 0.0
        self.turns = 0

    @property
    def worked_s(self) -> float:
        """How long the pass has worked since its last rest, in seconds."""
        return self._worked_s + self._timer() - self._began

    async def give_way(self) -> bool:
        """Let other work run if this turn is over; return whether it did."""
        lasted = self._timer() - self._began
        if lasted < self._turn_s:
            return False
        self._worked_s += lasted
        self.turns += 1
        loop = asyncio.get_running_loop()
        await _rows.setdefault(loop, _Row()).wait(loop)
        self._began = self._timer()
        return True

    async def awaited(self, coming: Awaitable[T]) -> T:
        """Return what comes from elsewhere; to wait for it is no work."""
        asked = self._timer()
        came = await coming
        self._began += self._timer() - asked
        return came

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Return the result of a long decision, giving way between its steps.

        Pure code cannot give way by itself, so it is a generator that yields wherever the state may
        change without invalidating what it has found so far. Cancelling this closes it.
        """
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as done:
                    outcome: T = done.value
                    return outcome
                await self.give_way()
        finally:
            steps.close()

    async def rest(self, least_s: float = 0.0) -> None:
        """End the pass, and wait until the next may begin.

        Passes that rest take at most a quarter of the time, however much there is to do.

        Args:
            least_s: the shortest wait, in seconds.
        """
        await asyncio.sleep(max(least_s, _REST * self.worked_s))
        self._worked_s, self._began = 0.0, self._timer()


def outcome(steps: Generator[None, None, T]) -> T:
    """Return the result of a long decision in one go, for when nobody waits meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found


def pause_s(failures: int, first_s: float, last_s: float, chance: float) -> float:
    """Return how long to wait after so many failures in a row, in seconds.

    It doubles each time. Jitter takes off up to half: what failed together is not repeated
    together.

    Args:
        failures: how many, 1 at least.
        first_s: the longest wait after the first one, in seconds.
        last_s: the longest wait after any, in seconds.
        chance: from 0 to 1.
    """
    return min(first_s * 2.0 ** min(failures - 1, 30), last_s) * (1 + chance) / 2


@dataclass(slots=True)
class Backoff:
    """Waiting times that grow with each failure in a row.

    Attributes:
        first_s: the longest wait after the first one, in seconds.
        last_s: the longest wait after any, in seconds.
        chance: draws a number from 0 to 1.
        failures: how many there were in a row.
    """

    first_s: float
    last_s: float
    chance: Callable[[], float] = random.random
    failures: int = 0

    def failed(self) -> float:
        """Count a failure, and return how long to wait, in seconds."""
        self.failures += 1
        return pause_s(self.failures, self.first_s, self.last_s, self.chance())

    def succeeded(self) -> None:
        """Start over."""
        self.failures = 0

    async def sleep(self) -> None:
        """Count a failure, and wait."""
        await asyncio.sleep(self.failed())
