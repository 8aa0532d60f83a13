"""A profile of the event loop's thread: which functions run, sampled a hundred times a second.

The samples are folded stacks, one a line, as flame graphs take them (speedscope, flamegraph.pl).
Another thread looks at the stack, so that calls take no longer meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from types import FrameType
from urllib.parse import parse_qs

from reserver.http.answer import HttpResponse, error, text
from reserver.http.request import HttpRequest

PATH = "/debug/profile"

_MOST_S = 30
_DEFAULT_S = 5
_PAUSE_S = 0.01


class Profiler:
    """Profiles the thread that it is made in, one profile at a time."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._is_busy = False

    async def profile(self, request: HttpRequest) -> HttpResponse:
        """Return the folded stacks of the next ``?seconds=N``."""
        given = parse_qs(request.query).get("seconds", [str(_DEFAULT_S)])[0]
        if not (given.isascii() and given.isdecimal() and 0 < int(given[:3]) <= _MOST_S):
            problem = f"seconds: write a whole number from 1 to {_MOST_S}"
            return error(HTTPStatus.BAD_REQUEST, problem)
        if self._is_busy:
            return error(HTTPStatus.TOO_MANY_REQUESTS, "another profile is being made; try again")
        self._is_busy, over = True, threading.Event()
        try:
            return text(await asyncio.to_thread(self._sampled, int(given), over))
        finally:
            self._is_busy = False
            over.set()

    def _sampled(self, seconds: int, over: threading.Event) -> str:
        stacks = Counter[str]()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until and not over.wait(_PAUSE_S):
            frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - its documented name
            stacks[";".join(reversed(list(_names(frame))))] += 1
        return "".join(f"{stack} {count}\n" for stack, count in stacks.most_common())


def _names(frame: FrameType | None) -> Iterator[str]:
    """Yield the functions of a stack, the innermost first."""
    while frame is not None:
        yield f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}"
        frame = frame.f_back
