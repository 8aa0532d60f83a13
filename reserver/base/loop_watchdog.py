"""Watches the event loop, and reports the function that blocked the loop for too long.

While a beat of the loop is overdue, a thread samples the stack of the loop's thread. Otherwise the
cost is one timer call fifty times a second.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

import structlog

log = structlog.get_logger(__name__)

LIMIT_S = 0.1
"""A loop that is blocked for longer is reported, in seconds."""

BEAT_S = 0.02
"""The time between two beats of the loop, in seconds."""

COLLECTION = "garbage collection"
UNKNOWN = "unknown"


class Position(NamedTuple):
    """The position of the loop's thread in the code.

    Attributes:
        by: the innermost function of Reserver, as ``module.function``.
        task: the coroutine that the loop was running.
    """

    by: str
    task: str


class Stall(NamedTuple):
    """A time in which the event loop was blocked.

    Attributes:
        position: the most frequent position of the loop's thread.
        seconds: duration, exact to two hundredths of a second.
        cpu_seconds: CPU time of the process meanwhile; little if it waited, or was stopped.
        gc_seconds: the part of the duration that garbage collection took.
    """

    position: Position
    seconds: float
    cpu_seconds: float
    gc_seconds: float


class LoopWatchdog:
    """Reports each time that the event loop was blocked for longer than `LIMIT_S`."""

    def __init__(self, report: Callable[[str, float], None]) -> None:
        """Call `report` with the function that blocked the loop and the duration in seconds."""
        self._report = report
        self._seen: Tally[Position] = Tally()
        self._beat_at = self._cpu_at = self._gc_s = self._gc_began = 0.0
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running event loop until the block ends."""
        loop = asyncio.get_running_loop()
        self._beat_at, self._cpu_at = time.perf_counter(), time.process_time()
        beat = loop.call_later(BEAT_S, self._beat, loop)
        ident = threading.get_ident()
        thread = threading.Thread(target=self._poll, args=(loop, ident), daemon=True, name="stalls")
        gc.callbacks.append(self._collecting)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            beat.cancel()
            gc.callbacks.remove(self._collecting)
            thread.join()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record that the loop runs, and report the stall that has just ended."""
        if self._over.is_set():
            return
        now, cpu = time.perf_counter(), time.process_time()
        lasted = now - self._beat_at
        if lasted > LIMIT_S:
            position = max(
                self._seen, key=self._seen.__getitem__, default=Position(UNKNOWN, UNKNOWN)
            )
            if self._gc_s > lasted / 2:
                position = position._replace(by=COLLECTION)
            self._report_stall(Stall(position, lasted, cpu - self._cpu_at, self._gc_s))
        self._seen.clear()
        self._beat_at, self._cpu_at, self._gc_s = now, cpu, 0.0
        loop.call_later(BEAT_S, self._beat, loop)

    def _report_stall(self, stall: Stall) -> None:
        self._report(stall.position.by, stall.seconds)
        log.warning(
            "event loop held",
            seconds=round(stall.seconds, 3),
            by=stall.position.by,
            task=stall.position.task,
            cpu_seconds=round(stall.cpu_seconds, 3),
            gc_seconds=round(stall.gc_seconds, 3),
        )

    def _poll(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        """Sample the position of the loop's thread while a beat is overdue."""
        while not self._over.wait(BEAT_S):
            if time.perf_counter() - self._beat_at > 2 * BEAT_S:
                frame = sys._current_frames().get(ident)  # noqa: SLF001 - documented, for this
                self._seen[Position(_ours(frame), _task(loop))] += 1

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:  # noqa: PLR2004 - the oldest; the others are short
            return
        if phase == "start":
            self._gc_began = time.perf_counter()
        else:
            self._gc_s += time.perf_counter() - self._gc_began


def _ours(frame: FrameType | None) -> str:
    """Return the innermost function of Reserver in a stack."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("reserver.") and module != __name__:
            return f"{module.removeprefix('reserver.')}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return UNKNOWN


def _task(loop: asyncio.AbstractEventLoop) -> str:
    """Return the name of the coroutine that a loop is running."""
    task = asyncio.current_task(loop)
    coroutine = task.get_coro() if task is not None else None
    return getattr(coroutine, "__qualname__", UNKNOWN)
