"""Pacing: long passes yield to the event loop between steps, and failed attempts back off."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

TURN_S = 0.001
"""Seconds of work between two yields to the event loop.

The last step may take as long again; together they must end within five milliseconds.
"""

_REST = 3
"""Seconds of rest per second of work: a pass uses at most a quarter of the time."""

_ROUNDS = 5
"""Iterations of the event loop between two turns: reading, deciding and answering a call are steps
of their own, and each step would otherwise wait for another turn."""

T = TypeVar("T")

Steps = Generator[None, None, None]
"""A long calculation that lets other work run at each yield."""


present_consumer: ContextVar[str] = ContextVar("consumer", default="")
"""The consumer for whom the present task works; empty for Reserver itself."""


class FairQueue(Generic[T]):
    """A queue from which consumers get an item in turn."""

    def __init__(self) -> None:
        """Begin empty."""
        self._of: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        """Return whether any item waits."""
        return bool(self._of)

    def put(self, consumer: str, item: T) -> None:
        """Add an item, behind those of its consumer."""
        self._of.setdefault(consumer, deque()).append(item)

    def take(self) -> T:
        """Remove and return the next item; its consumer comes behind all others."""
        consumer = next(iter(self._of))
        items = self._of.pop(consumer)
        item = items.popleft()
        if items:
            self._of[consumer] = items
        return item


class _TurnQueue:
    """The passes that have yielded on one event loop; every few iterations one of them resumes.

    If all resumed at once, a call would wait for a turn of each. Consumers get a turn each: one
    client's many calls delay another's by one, and Reserver's own passes too.
    """

    def __init__(self) -> None:
        self._waiting = FairQueue[asyncio.Future[None]]()

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a turn."""
        turn = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._next, loop, _ROUNDS)
        self._waiting.put(present_consumer.get(), turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop, rounds: int) -> None:
        if rounds:
            loop.call_soon(self._next, loop, rounds - 1)
            return
        turn = self._waiting.take()
        if not turn.done():  # Otherwise the pass was cancelled.
            turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._next, loop, _ROUNDS)


_turn_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _TurnQueue] = WeakKeyDictionary()


class Pacer:
    """One pass over many objects that yields to other work every few milliseconds.

    Attributes:
        turns: yields so far; values read before the last yield may be out of date.
    """

    def __init__(self, turn_s: float = TURN_S, timer: Callable[[], float] = perf_counter) -> None:
        """Begin a turn.

        Args:
            turn_s: length of a turn, in seconds.
            timer: monotonic seconds.
        """
        self._turn_s = turn_s
        self._timer = timer
        self._began = timer()
        self._worked_s = 0.0
        self.turns = 0

    @property
    def worked_s(self) -> float:
        """Work of the pass since its last rest, in seconds."""
        return self._worked_s + self._timer() - self._began

    async def give_way(self) -> bool:
        """Let other work run if this turn is over; return whether other work ran."""
        lasted = self._timer() - self._began
        if lasted < self._turn_s:
            return False
        self._worked_s += lasted
        self.turns += 1
        loop = asyncio.get_running_loop()
        await _turn_queues.setdefault(loop, _TurnQueue()).wait(loop)
        self._began = self._timer()
        return True

    async def awaited(self, result: Awaitable[T]) -> T:
        """Await the result of I/O; the wait does not count as work."""
        asked = self._timer()
        received = await result
        self._began += self._timer() - asked
        return received

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Return the result of a long calculation, yielding to other work between its steps.

        Pure code cannot await, so the calculation is a generator that yields wherever the state may
        change without invalidating earlier findings. Cancellation closes the generator.
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
        """End the pass, and wait until the next pass may begin.

        Passes that rest use at most a quarter of the time, whatever the amount of work.

        Args:
            least_s: the shortest wait, in seconds.
        """
        await asyncio.sleep(max(least_s, _REST * self.worked_s))
        self._worked_s, self._began = 0.0, self._timer()


def outcome(steps: Generator[None, None, T]) -> T:
    """Return the result of a long calculation without yielding, where no other work waits."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found


def pause_s(failures: int, first_s: float, last_s: float, chance: float) -> float:
    """Return the wait in seconds after a number of failures in a row.

    The wait doubles with each failure. Jitter shortens it by up to half, so that attempts that
    failed together are not repeated together.

    Args:
        failures: failures in a row, at least 1.
        first_s: the longest wait after the first failure, in seconds.
        last_s: the longest wait after any failure, in seconds.
        chance: the random number for the jitter, from 0 to 1.
    """
    return min(first_s * 2.0 ** min(failures - 1, 30), last_s) * (1 + chance) / 2


@dataclass(slots=True)
class Backoff:
    """Waits that grow with each failure in a row.

    Attributes:
        first_s: the longest wait after the first failure, in seconds.
        last_s: the longest wait after any failure, in seconds.
        chance: draws a number from 0 to 1.
        failures: failures in a row.
    """

    first_s: float
    last_s: float
    chance: Callable[[], float] = random.random
    failures: int = 0

    def failed(self) -> float:
        """Count a failure, and return the wait in seconds."""
        self.failures += 1
        return pause_s(self.failures, self.first_s, self.last_s, self.chance())

    def succeeded(self) -> None:
        """Reset the count of failures."""
        self.failures = 0

    async def sleep(self) -> None:
        """Count a failure, and wait."""
        await asyncio.sleep(self.failed())
