"""A dump for bug reports, a profile, and the z-pages.

The dump has settings, counts and names: no specs, no descriptions, no labels, annotations or
environment of pods, no bytes of certificates or tokens.

/flagz and /statusz (the z-pages of Kubernetes' components, KEP-4827, KEP-4828) are for people,
/configz is for programs, too. Only listeners for trusted callers serve them. A profile shows the
functions of the event loop's thread, sampled a hundred times a second by another thread, so that
calls take no longer meanwhile. The samples are folded stacks, one per line, the input of flame
graphs (speedscope, flamegraph.pl).
"""

from __future__ import annotations

import asyncio
import platform
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from http import HTTPStatus
from importlib import metadata
from importlib.metadata import version
from itertools import islice
from types import FrameType
from typing import Any
from urllib.parse import parse_qs

from reserver import DISTRIBUTION
from reserver.base.pacer import Pacer
from reserver.cluster.quantity import shorten
from reserver.http.message import HttpRequest, HttpResponse, Paths, error, text
from reserver.k8s.objects.objects import encode
from reserver.process.assembly import Assembly
from reserver.process.reload import Reload
from reserver.settings.configuration import show_duration
from reserver.settings.flags import declared
from reserver.settings.serve import Settings

PATH = "/debug/profile"

_MOST_S = 30
_DEFAULT_S = 5
_PAUSE_S = 0.01


class Profiler:
    """Profiles the thread that creates it, one profile at a time."""

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


_HEADER = """
reserver {}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
guarantees and is for debugging purposes only.

"""
"""The header of Kubernetes' components, with the name of the page."""


def paths(reload: Reload, others: Iterable[str]) -> Paths:
    """Return the handlers of the pages; `others` are the other paths of the listener."""
    began, served = time.time(), [*others]

    def status() -> HttpResponse:
        return text(statusz(began, time.time(), served))

    pages = {
        "/configz": lambda: HttpResponse(reload.configz()),
        "/flagz": lambda: text(flagz(reload.settings)),
        "/statusz": status,
    }
    served += pages
    return {path: ("GET", partial(_answer, page)) for path, page in pages.items()}


def _answer(page: Callable[[], HttpResponse], _: HttpRequest) -> HttpResponse:
    return page()


def flagz(settings: Settings) -> str:
    """Return each flag with its value in force, from the command line, the file or by default."""
    lines = []
    for each in declared(settings):
        value = getattr(settings, each.field)
        values = map(_written, value if each.is_repeated else (value,))
        lines.append(f"{each.name.removeprefix('--')}={','.join(values)}\n")
    return "".join((_HEADER.format("flagz"), *sorted(lines)))


def _written(value: Any) -> str:  # noqa: ANN401 - a flag may have any type
    """Return a value as written on the command line."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return show_duration(value)
        case str(address), int(port):
            return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        case tuple():
            return "/".join(value)
    return "" if value is None else str(value)


def statusz(began: float, now: float, served: Iterable[str]) -> str:
    """Return start time and uptime of the process, its versions, and its paths.

    Args:
        began: start of the process, unix seconds.
        now: unix seconds.
        served: the paths; only the first segment of each is shown.
    """
    started = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(began))
    minutes, seconds = divmod(int(now - began), 60)
    hours, minutes = divmod(minutes, 60)
    folders = sorted({f"/{path.split('/')[1]}" for path in served})
    lines = (
        f"Started: {started}",
        f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
        f"Python version: {platform.python_version()}",
        f"Binary version: {version(DISTRIBUTION)}",
        f"Paths: {' '.join(folders)}",
    )
    return _HEADER.format("statusz") + "".join(f"{line}\n" for line in lines)


MOST_BYTES = 2**20
"""Most bytes of the document."""

_MOST_NAMED = 100
"""Most reservations, and most waiting pods, in the document."""

_MOST_LINES = 2000
"""Most lines of metrics in the document."""

_MOST_TEXT = 1000
"""Most characters of a text in the document."""

_PACKAGES = (DISTRIBUTION, "aiohttp", "grpcio", "kubernetes", "msgspec", "numpy", "uvloop")


async def dump(
    settings: Settings, parts: Assembly, exposed: Callable[[], Awaitable[bytes]]
) -> bytes:
    """Return the document, as JSON; `exposed` returns the metrics in Prometheus' format."""
    waiting = parts.state.waiting
    metrics = (await exposed()).decode(errors="replace").splitlines()
    await Pacer(turn_s=0.0).give_way()  # Other calls have waited for the same metrics.
    document = {
        "writtenAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "python": platform.python_version(),
            "system": platform.platform(),
            **{name: metadata.version(name) for name in _PACKAGES},
        },
        "settings": {
            each.name: _setting(getattr(settings, each.name)) for each in fields(settings)
        },
        "obstacles": _texts(parts.readiness.obstacles()),
        "nodes": parts.state.snapshot.node_count,
        "pods": len(parts.state.pods),
        "reservations": len(parts.ledger),
        "someReservations": list(_reservations(parts)),
        "waitingPods": len(waiting),
        "someWaitingPods": [str(each.pod.name) for each in islice(waiting.values(), _MOST_NAMED)],
        "watches": list(_watches(parts)),
        "queues": {queue.name: queue.depth for queue in parts.queues()},
        "tasks": dict(_tasks().most_common(_MOST_NAMED)),
        "metrics": _texts(line for line in metrics if not line.startswith("#")),
    }
    for part in ("metrics", "settings", "watches"):
        if len(packed := encode(document)) <= MOST_BYTES:
            break
        document[part] = "too long"
    return packed


def _reservations(parts: Assembly) -> Iterator[dict[str, object]]:
    """Yield identity and phase of the oldest reservations, without texts of their authors."""
    for reservation, phase in islice(parts.ledger, _MOST_NAMED):
        yield {
            "ref": shorten(str(reservation.ref), _MOST_TEXT),
            "store": reservation.ref.kind,
            "phase": phase,
            "slots": reservation.slots,
            "node": reservation.node,
        }


def _watches(parts: Assembly) -> Iterator[dict[str, object]]:
    for each in parts.reflectors:
        yield {
            "collection": shorten(str(each), _MOST_TEXT),
            "obstacle": shorten(each.obstacle() or "", _MOST_TEXT),
            "synced": each.synced.is_set(),
            "current": each.current.is_set(),
            "absent": each.absent,
            "lists": each.lists,
            "watches": each.watches,
            "unreadable": each.view.unreadable,
        }


def _tasks() -> Counter[str]:
    """Return the number of tasks, by coroutine."""
    return Counter(
        getattr(task.get_coro(), "__qualname__", "unknown") for task in asyncio.all_tasks()
    )


def _setting(value: object) -> object:
    """Return a setting as JSON; files by their names."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, tuple | list | frozenset):
        return [_setting(each) for each in islice(value, _MOST_NAMED)]
    return shorten(str(value), _MOST_TEXT)


def _texts(texts: Iterable[str]) -> list[str]:
    return [shorten(text, _MOST_TEXT) for text in islice(texts, _MOST_LINES)]
