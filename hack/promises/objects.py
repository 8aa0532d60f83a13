"""Objects of a history: what each was at a moment, and when moves ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hack.promises.case import Case
from hack.promises.history import Line, Moment

ENDED = frozenset({"Succeeded", "Failed", "Aborted"})
"""Phases in which a PodMove has ended."""


def at(lines: list[Line], moment: Moment) -> Mapping[str, Any] | None:
    """Return what an object was just before a moment; None if there was none."""
    before = [line for line in lines if line.moment.revision < moment.revision]
    return before[-1].item if before and before[-1].kind != "DELETED" else None


def by_name(case: Case, collection: str) -> dict[str, list[Line]]:
    """Return the writes to the objects of a collection, by ``namespace/name``."""
    found: dict[str, list[Line]] = {}
    for line in case.world.history.lines:
        if line.collection == collection:
            found.setdefault(line.name, []).append(line)
    return found


def by_uid(case: Case) -> dict[str, list[Line]]:
    """Return the writes to each pod."""
    found: dict[str, list[Line]] = {}
    for line in case.world.history.lines:
        if line.collection == "pods":
            found.setdefault(line.item["metadata"]["uid"], []).append(line)
    return found


def is_evicted(item: Mapping[str, Any]) -> bool:
    """Return whether a pod says that it was evicted."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(
        each["type"] == "DisruptionTarget" and each.get("reason") == "EvictionByEvictionAPI"
        for each in conditions
    )


def phase(line: Line) -> str:
    """Return the phase that an object says it is in; empty if it says none."""
    return str((line.item.get("status") or {}).get("phase", ""))


def ends_of(case: Case) -> dict[str, Moment]:
    """Return when each PodMove ended, or was deleted, by its UID."""
    ends: dict[str, Moment] = {}
    for known in by_name(case, "podmoves").values():
        for line in known:
            if line.kind == "DELETED" or phase(line) in ENDED:
                ends.setdefault(line.item["metadata"]["uid"], line.moment)
    return ends
