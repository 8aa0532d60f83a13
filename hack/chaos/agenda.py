"""The timed actions of a thread."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import Callable
from itertools import count

_LOOK_AGAIN = 0.1  # seconds

Action = Callable[[], None]


class Agenda:
    """The timed actions of one thread, to which it belongs.

    Args:
        rng: the source of random numbers.
        times: number of actions to begin.
        seconds: approximate time in which they begin.
        over: set to end at once, whatever is left.

    Attributes:
        is_ending: it was stopped: actions must not schedule further ones.
    """

    def __init__(
        self, rng: random.Random, times: int, seconds: float, over: threading.Event
    ) -> None:
        self._rng = rng
        self._over = over
        self._left = times
        self._pause = seconds / times if times else 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._sequence = count()
        self.is_ending = False

    def after(self, least: float, most: float, action: Action) -> None:
        """Schedule an action after a random number of seconds."""
        at = time.time() + self._rng.uniform(least, most)
        heapq.heappush(self._due, (at, next(self._sequence), action))

    def work(self, begin: Callable[[], bool], stop: threading.Event) -> None:
        """Begin all actions and run all scheduled ones; once stopped, begin no more.

        An action that could not begin (False) is repeated.
        """
        next_one = time.time()
        while not self._over.is_set():
            now = time.time()
            if stop.is_set():
                self._left, self.is_ending = 0, True
            if self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            elif self._left and next_one <= now:
                next_one = now + self._pause * self._rng.uniform(0.3, 1.7)
                self._left -= begin()
            elif self._left or self._due:
                wake = min([next_one] * bool(self._left) + [due[0] for due in self._due[:1]])
                time.sleep(min(_LOOK_AGAIN, max(0.0, wake - now)))
            else:
                return
