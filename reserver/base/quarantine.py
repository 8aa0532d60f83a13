"""The quarantine: an exception affects only the object that raised it (docs/adr/0017).

Code that reads one of many objects, or answers one of many calls, does so in a `quarantined` block.
An exception there is a bug of Reserver: its traceback is logged once, a metric counts it, and the
caller decides about the object. Holds stay in force.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
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
    "listener",
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
"""The component that reads the object."""

counts: Tally[Component] = Tally()
"""Number of exceptions, by component."""

_logged: LRUCache[tuple[str, str, str], bool] = LRUCache(4096)


class quarantined(sparing):  # noqa: N801 - it reads like a statement
    """Read one object; if that raises, log and count the exception, and go on."""

    __slots__ = ("_component", "_faults", "_reported", "_subject")

    def __init__(
        self, component: Component, subject: object, failed: Callable[[Fault], None] | None = None
    ) -> None:
        """Name the component and the object; `failed` is called with the fault to report."""
        self._component = component
        self._subject = subject
        self._reported = failed
        self._faults: list[Fault] = []

    def __enter__(self) -> list[Fault]:
        """Begin the block; return the list of its faults, which is empty unless it raises."""
        return self._faults

    def _take(self, exc: Exception) -> None:
        fault = take_note(self._component, self._subject, exc)
        self._faults.append(fault)
        if self._reported is not None:
            self._reported(fault)


def take_note(component: Component, subject: object, exc: Exception) -> Fault:
    """Count and log an exception; return the fault to report."""
    counts[component] += 1
    cause = _cause(exc)
    if (component, str(subject), cause) not in _logged:
        _logged[component, str(subject), cause] = True
        log.error(
            "fault, passed over", component=component, what=str(subject), cause=cause, exc_info=exc
        )
    problem = f"cannot be judged because of a fault in reserver ({cause})"
    return Fault("", problem, "its log has the traceback, please report it")


def _cause(exc: Exception) -> str:
    """Return kind and line of an exception, the same text for the same bug."""
    frames = extract_tb(exc.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(exc).__name__}{where}"
