"""The threads of a storm."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

_TICK = 0.2  # seconds
_THREADS = 9


class Crew:
    """The threads of a storm, as a context manager that ends them.

    Args:
        stop: see below.
        attend: is called with the name of the phase, several times a second.

    Attributes:
        calm: set when no new work is to be begun.
        stop: set when all is to end.
    """

    def __init__(self, stop: threading.Event, attend: Callable[[str], None]) -> None:
        self.calm = threading.Event()
        self.stop = stop
        self._attend = attend
        self._pool = ThreadPoolExecutor(_THREADS)
        self._futures: list[Future[None]] = []

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Returns when all threads have ended."""
        self.calm.set()
        self.stop.set()
        self._pool.shutdown()

    def add(self, work: Callable[[threading.Event], None], end: threading.Event) -> Future[None]:
        """Begins a work in a thread of its own; it is given the event that tells it to end."""
        future = self._pool.submit(work, end)
        self._futures.append(future)
        return future

    def look(self, phase: str) -> None:
        """Attends to what is going on; raises what ended a thread."""
        self._attend(phase)
        for future in self._futures:
            if future.done():
                future.result()

    def until(self, condition: Callable[[], bool], phase: str, seconds: float) -> bool:
        """Waits until a condition holds; returns False if that takes longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.look(phase)
            self.stop.wait(_TICK)
        return True
