"""Back-off: how long to wait before another attempt, longer each time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass


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
