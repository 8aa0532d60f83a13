"""Number of ready pods of a Deployment, from the log of all writes.

A Service sends requests to pods that are ready and are not being deleted. EndpointSlices are of no
use here: the pods that KWOK simulates have no IP address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hack.promises.history import History


@dataclass(frozen=True)
class Readiness:
    """Numbers of ready pods.

    Attributes:
        least: the lowest number at any time.
        most: the highest number.
        without: number of gaps without a ready pod.
        seconds: total time of these gaps.
    """

    least: int
    most: int
    without: int
    seconds: float


def readiness(history: History, app: str) -> Readiness:
    """Return the numbers of ready pods of a Deployment, from the first ready pod on.

    Raises:
        ValueError: no pod was ready.
    """
    ready: set[str] = set()
    counts: list[tuple[float, int]] = []
    for line in history.lines:
        metadata = line.item["metadata"]
        if line.collection != "pods" or (metadata.get("labels") or {}).get("app") != app:
            continue
        is_ready = line.kind != "DELETED" and _is_ready(line.item)
        (ready.add if is_ready else ready.discard)(metadata["uid"])
        if ready or counts:
            counts.append((line.moment.at, len(ready)))
    if not counts:
        raise ValueError(f"no pod of {app} was ever ready")
    return _summed(counts, history.end)


def _summed(counts: list[tuple[float, int]], end: float) -> Readiness:
    gaps, since = [], None
    for at, count in [*counts, (end, counts[-1][1])]:
        if count == 0 and since is None:
            since = at
        elif since is not None and (count or at == end):
            gaps.append(max(0.0, at - since))
            since = None
    numbers = [count for _, count in counts]
    return Readiness(min(numbers), max(numbers), len(gaps), sum(gaps))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]
