"""The quarantine: what raises while it is judged costs itself, and nothing else (docs/adr/0017).

Everything that judges one of many things, or answers one of many calls, does so in a block of
`quarantined`. The exception is a fault of ours: the log has its traceback, once, a metric counts
it, and whoever judges decides what becomes of the thing. What is held stays held.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import extract_tb
from typing import Literal

import structlog
from cachetools import LRUCache

from reserver.errors import Fault, sparing

log = structlog.get_logger(__name__)

Place = Literal[
    "bind",
    "call",
    "cleaner",
    "companion",
    "effect",
    "event",
    "feed",
    "history",
    "http",
    "ledger",
    "pass",
    "placer",
    "quota",
    "status",
    "store",
    "waker",
    "watch",
]
"""Where something is judged."""

counts: Tally[Place] = Tally()
"""How often something raised, by where it was judged."""

_told: LRUCache[tuple[str, str, str], bool] = LRUCache(4096)


@contextmanager
def quarantined(
    place: Place, what: object, failed: Callable[[Fault], None] = lambda _: None
) -> Iterator[list[Fault]]:
    """Judge one thing; if that raises, it is told, counted and passed over.

    Args:
        place: where it is judged.
        what: names the thing.
        failed: is told what to tell of it.

    Yields:
        What was told: empty until the block has raised.
    """
    told: list[Fault] = []

    def take(exc: Exception) -> None:
        told.append(take_note(place, what, exc))
        failed(told[0])

    with sparing(take):
        yield told


def take_note(place: Place, what: object, exc: Exception) -> Fault:
    """Count and log an exception; return what to tell of the thing that it is about."""
    counts[place] += 1
    cause = _cause(exc)
    if (place, str(what), cause) not in _told:
        _told[place, str(what), cause] = True
        log.error("fault, passed over", place=place, what=str(what), cause=cause, exc_info=exc)
    problem = f"cannot be judged because of a fault in reserver ({cause})"
    return Fault("", problem, "its log has the traceback, please report it")


def _cause(exc: Exception) -> str:
    """Return kind and place of an exception: few words, the same for the same fault."""
    frames = extract_tb(exc.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(exc).__name__}{where}"
