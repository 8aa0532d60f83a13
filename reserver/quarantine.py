"""The quarantine: an exception costs only the object that raised it (docs/adr/0017).

Code that judges one of many objects, or answers one of many calls, does so in a `quarantined`
block. An exception there is a bug of Reserver: its traceback is logged once, a metric counts it,
and the caller decides what becomes of the object. What is held stays held.
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

Component = Literal[
    "bind",
    "buffer",
    "call",
    "cleaner",
    "companion",
    "effect",
    "event",
    "feed",
    "history",
    "http",
    "ledger",
    "move",
    "pass",
    "placer",
    "provisioning",
    "quota",
    "status",
    "store",
    "waker",
    "watch",
]
"""What judges an object."""

counts: Tally[Component] = Tally()
"""How many exceptions there were, by component."""

_told: LRUCache[tuple[str, str, str], bool] = LRUCache(4096)


@contextmanager
def quarantined(
    component: Component, what: object, failed: Callable[[Fault], None] = lambda _: None
) -> Iterator[list[Fault]]:
    """Judge one object; if that raises, log and count the exception, and go on.

    Args:
        component: what judges it.
        what: names the object.
        failed: called with the fault to report.

    Yields:
        The faults: empty unless the block has raised.
    """
    told: list[Fault] = []

    def take(exc: Exception) -> None:
        told.append(take_note(component, what, exc))
        failed(told[0])

    with sparing(take):
        yield told


def take_note(component: Component, what: object, exc: Exception) -> Fault:
    """Count and log an exception; return the fault to report."""
    counts[component] += 1
    cause = _cause(exc)
    if (component, str(what), cause) not in _told:
        _told[component, str(what), cause] = True
        log.error(
            "fault, passed over", component=component, what=str(what), cause=cause, exc_info=exc
        )
    problem = f"cannot be judged because of a fault in reserver ({cause})"
    return Fault("", problem, "its log has the traceback, please report it")


def _cause(exc: Exception) -> str:
    """Return kind and line of an exception in few words, the same for the same bug."""
    frames = extract_tb(exc.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(exc).__name__}{where}"
