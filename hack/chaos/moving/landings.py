"""Waits of the replacements of evicted pods for a node, from the log of all writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from hack.promises.history import History, Line, Moment

_SEAT_WAITS = "waiting for a place of reservation"
"""Part of kube-scheduler's message for a pod whose seat opens in a moment: once Reserver's watch
shows that the previous pod is being deleted."""


@dataclass(frozen=True)
class Landing:
    """One eviction, and the landing of its replacement.

    Attributes:
        seconds: from the eviction until the replacement was bound; None if it was not.
        was_refused: kube-scheduler found no room for the replacement at first.
    """

    seconds: float | None
    was_refused: bool


@dataclass(frozen=True)
class Landings:
    """All evictions with their landings."""

    each: tuple[Landing, ...]

    @property
    def seconds(self) -> list[float]:
        """Seconds of the replacements that landed."""
        return [landing.seconds for landing in self.each if landing.seconds is not None]

    @property
    def refused(self) -> int:
        """Number of replacements that waited for room."""
        return sum(landing.was_refused for landing in self.each)

    @property
    def stranded(self) -> int:
        """Number of replacements without a node at the end."""
        return len(self.each) - len(self.seconds)

    def percentile(self, number: int) -> float:
        """Return a percentile of the seconds."""
        seconds = self.seconds
        return quantiles(seconds, n=100)[number - 1] if len(seconds) > 1 else sum(seconds)


def landings(history: History, but: Collection[str]) -> Landings:
    """Return the landing of each eviction, except for the Deployments `but`.

    The first pod that a ReplicaSet creates after an eviction is its replacement, and so on: all
    counted pods belong to controllers whose pods leave by evictions only.
    """
    pods: dict[str, list[Line]] = {}
    for line in history.lines:
        if line.collection != "pods":
            continue
        if line.item["metadata"].get("labels", {}).get("app") not in but:
            pods.setdefault(line.item["metadata"]["uid"], []).append(line)
    sets: dict[str, list[list[Line]]] = {}
    for lines in sorted(pods.values(), key=lambda lines: lines[0].moment):
        for owner in lines[0].item["metadata"].get("ownerReferences") or ():
            sets.setdefault(owner["uid"], []).append(lines)
    return Landings(tuple(found for each in sets.values() for found in _of_set(each)))


def _of_set(pods: list[list[Line]]) -> Iterator[Landing]:
    evicted = sorted(moment for lines in pods if (moment := _evicted_at(lines)) is not None)
    made = [lines for lines in pods if evicted and lines[0].moment > evicted[0]]
    for number, moment in enumerate(evicted):
        heir = made[number] if number < len(made) else []
        bound = next((line.moment for line in heir if line.item["spec"].get("nodeName")), None)
        yield Landing(bound.at - moment.at if bound else None, any(map(_is_refused, heir)))


def _evicted_at(lines: list[Line]) -> Moment | None:
    evicted = (x.moment for x in lines if _condition(x.item, "DisruptionTarget", "True"))
    return next(evicted, None)


def _is_refused(line: Line) -> bool:
    found = _condition(line.item, "PodScheduled", "False")
    return found is not None and _SEAT_WAITS not in found.get("message", "")


def _condition(item: Mapping[str, Any], kind: str, status: str) -> Mapping[str, Any] | None:
    conditions = item.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind and c["status"] == status), None)
