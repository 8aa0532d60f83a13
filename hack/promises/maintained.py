"""Did nodes that are maintained get no new holds, and did everybody's cordon stay?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from hack.promises.case import Case
from hack.promises.history import Line, Moment
from hack.promises.objects import by_name
from hack.promises.report import Kind, Violation

_MARK = "reserver.io/maintenance"
"""Annotation of a node: its windows as ``use:key``, separated by spaces."""

_CLOSED = frozenset({"DrainInProgress", "Drained", "MaintenanceInProgress"})
"""Conditions (KEP-5683) of nodes that take no pods."""


def placed_in_maintenance(case: Case) -> Iterator[Violation]:
    """Yield the places that Reserver chose on nodes that had long been closed."""
    nodes = by_name(case, "nodes")
    for life in case.world.lives:
        before: frozenset[str] = frozenset()
        for moment, parts in () if life.entry.node else life.moves:
            placed = frozenset(node for node, _ in parts)
            for node in sorted(placed - before):
                if _was_closed(case, nodes.get(f"/{node}", []), moment):
                    yield Violation(
                        kind=Kind.PLACED_IN_MAINTENANCE,
                        revision=moment.revision,
                        at=moment.at,
                        node=node,
                        entry=str(life.ref),
                        text="placed on a node that is being emptied or maintained",
                    )
            before = placed


def _was_closed(case: Case, lines: list[Line], moment: Moment) -> bool:
    """Return whether a node was closed for as long as a decision on the way may have taken."""
    since = case.timing.earliest(moment.at) - case.rules.grace_s
    before = [line for line in lines if line.moment.at <= since]
    meanwhile = [line for line in lines if since < line.moment.at <= moment.at]
    return bool(before) and all(_is_closed(line.item) for line in (before[-1], *meanwhile))


def _is_closed(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] in _CLOSED and each["status"] == "True" for each in conditions)


def cordons_lifted(case: Case) -> Iterator[Violation]:
    """Yield the writes that removed a window's mark together with another client's cordon.

    Reserver writes mark and cordon at once; other clients uncordon a node and leave the mark.
    """
    for lines in by_name(case, "nodes").values():
        for before, after in pairwise(lines):
            was, now = _mark(before), _mark(after)
            is_lifted = _is_cordoned(before) and not _is_cordoned(after)
            if is_lifted and was != now and "found-cordoned:" in was and " cordoned:" not in was:
                yield Violation(
                    kind=Kind.CORDON_LIFTED,
                    revision=after.moment.revision,
                    at=after.moment.at,
                    node=after.item["metadata"]["name"],
                    text="a window uncordoned what it had found cordoned",
                )


def _mark(line: Line) -> str:
    """Return what windows have done with a node, each use after a space."""
    return " " + str((line.item["metadata"].get("annotations") or {}).get(_MARK, ""))


def _is_cordoned(line: Line) -> bool:
    return bool((line.item.get("spec") or {}).get("unschedulable"))
