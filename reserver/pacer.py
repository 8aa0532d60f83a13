"""The pacer: lets a long pass give way, so that no call waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from time import perf_counter
from typing import TypeVar

TURN_S = 0.005
"""The longest that a pass goes on before other work gets its turn, in seconds."""

T = TypeVar("T")


class Pacer:
    """One pass over many things, which gives way to other work every five milliseconds."""

    def __init__(self, turn_s: float = TURN_S, timer: Callable[[], float] = perf_counter) -> None:
        """Begin a turn.

        Args:
            turn_s: how long a turn is, in seconds.
            timer: monotonic seconds.
        """
        self._turn_s = turn_s
        self._timer = timer
        self._began = timer()

    async def give_way(self) -> bool:
        """Let other work have its turn if this one is over; return whether it had."""
        if self._timer() - self._began < self._turn_s:
            return False
        await asyncio.sleep(0)
        self._began = self._timer()
        return True

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Return the outcome of a long decision, giving way between its steps.

        Pure code cannot give way by itself. It is a generator that yields wherever the state may
        change without harm to what it has found out so far.
        """
        while True:
            try:
                next(steps)
            except StopIteration as done:
                outcome: T = done.value
                return outcome
            await self.give_way()
