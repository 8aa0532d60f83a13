"""The fields of a spec that let other pods use a hold: preemptible, priority and lend."""

from __future__ import annotations

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput

LEAST_PRIORITY = -(2**31)
MOST_PRIORITY = 1_000_000_000
"""HighestUserDefinablePriority in pkg/apis/scheduling/types.go."""


class LendFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """To whom a reservation lends, as it is written."""

    below_priority: int


def lends_below(lend: LendFields | None, *, preemptible: bool) -> int | None:
    """Return below which priority pods may borrow a hold; None if it is not lent."""
    if lend is None:
        return None
    if preemptible:
        remedy = "remove one of the two: pods take the room, or borrow it"
        raise InvalidInput("lend", "cannot be set together with preemptible", remedy)
    return _priority(lend.below_priority, "lend.belowPriority")


def yields_above(priority: int | None, *, preemptible: bool) -> int | None:
    """Return above which priority pods may take a hold; None if none may."""
    least = _priority(priority or 0, "priority")
    if priority is not None and not preemptible:
        remedy = "remove it, or let pods of higher priority take the hold: preemptible: true"
        raise InvalidInput("priority", "has no effect without preemptible", remedy)
    return least if preemptible else None


def _priority(priority: int, path: str) -> int:
    if not LEAST_PRIORITY <= priority <= MOST_PRIORITY:
        problem = f"{quantity.shorten(str(priority))} is out of range"
        remedy = f"write {LEAST_PRIORITY} to {MOST_PRIORITY}, as in a PriorityClass"
        raise InvalidInput(path, problem, remedy)
    return priority
