"""The debug dump: the state of this process as one document for a bug report.

It says what was set and what is seen, by number and by name: no specs, no descriptions, no labels,
annotations or environment of pods, no bytes of certificates or tokens.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import fields
from importlib import metadata
from itertools import islice

from reserver import DISTRIBUTION
from reserver.cluster.quantity import shorten
from reserver.k8s.objects.objects import encode
from reserver.process.assembly import Assembly
from reserver.settings.serve import Settings

MOST_BYTES = 2**20
"""How long the document is at most, in bytes."""

_MOST_NAMED = 100
"""How many reservations and how many waiting pods it names."""

_MOST_LINES = 2000
"""How many lines of the metrics it has."""

_MOST_TEXT = 1000
"""How many characters of any text it has."""

_PACKAGES = (DISTRIBUTION, "aiohttp", "grpcio", "kubernetes", "msgspec", "numpy", "uvloop")


async def dump(
    settings: Settings, parts: Assembly, exposed: Callable[[], Awaitable[bytes]]
) -> bytes:
    """Return the document, as JSON; `exposed` returns the metrics as Prometheus reads them."""
    waiting = parts.state.waiting
    metrics = (await exposed()).decode(errors="replace").splitlines()
    document = {
        "writtenAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "python": platform.python_version(),
            "system": platform.platform(),
            **{name: metadata.version(name) for name in _PACKAGES},
        },
        "settings": {each.name: _said(getattr(settings, each.name)) for each in fields(settings)},
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
    """Yield the oldest: what they are, not what they say."""
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


def _tasks() -> Tally[str]:
    """Return how many tasks run which coroutine."""
    return Tally(
        getattr(task.get_coro(), "__qualname__", "unknown") for task in asyncio.all_tasks()
    )


def _said(value: object) -> object:
    """Return a setting as it was given: files by their names."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, tuple | list | frozenset):
        return [_said(each) for each in islice(value, _MOST_NAMED)]
    return shorten(str(value), _MOST_TEXT)


def _texts(texts: Iterable[str]) -> list[str]:
    return [shorten(text, _MOST_TEXT) for text in islice(texts, _MOST_LINES)]
