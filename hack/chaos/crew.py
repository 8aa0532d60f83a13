"""The threads of a storm."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

_TICK = 0.2  # seconds
_THREADS = 10


class Crew:
    """The threads of a storm, as a context manager that ends them.

    Args:
        stop: see below.
        attend: called with the name of the phase, several times a second.

    Attributes:
        calm: set when no new work may begin.
        stop: set to end all work.
    """

    def __init__(self, stop: threading.Event, attend: Callable[[str], None]) -> None:
        self.calm = threading.Event()
        self.stop = stop
        self._attend = attend
        self._pool = ThreadPoolExecutor(_THREADS)
        self._futures: list[Future[None]] = []

    def __enter__(self) -> Self:
        """Return itself; no thread runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Return when all threads have ended."""
        self.calm.set()
        self.stop.set()
        self._pool.shutdown()

    def add(self, work: Callable[[threading.Event], None], end: threading.Event) -> Future[None]:
        """Start a thread, which is given the event that ends it."""
        future = self._pool.submit(work, end)
        self._futures.append(future)
        return future

    def look(self, phase: str) -> None:
        """Attend to the storm; raise the exception of a thread that has failed."""
        self._attend(phase)
        for future in self._futures:
            if future.done():
                future.result()

    def until(self, condition: Callable[[], bool], phase: str, seconds: float) -> bool:
        """Wait until a condition is true; return False after `seconds`."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.look(phase)
            self.stop.wait(_TICK)
        return True
