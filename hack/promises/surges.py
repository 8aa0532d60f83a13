"""Was the copy of a pod that surged ready before the pod went, and did nothing of it stay?

All of it is judged by what PodMoves and pods said at the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hack.promises.case import Case
from hack.promises.history import Line
from hack.promises.objects import ENDED, at, by_name, by_uid, ends_of, is_evicted
from hack.promises.report import Kind, Violation

_SURGE = "reserver.io/surge"


def removed_before_ready(case: Case) -> Iterator[Violation]:
    """Yield the pods that went while they surged, though their copies were not ready.

    Nobody but their ReplicaSet removes pods where moves are recorded. One that leaves before its
    move hands the copy over has left by itself.
    """
    moves, pods = by_name(case, "podmoves"), by_uid(case)
    for uid, lines in pods.items():
        left = next((line for line in lines if _leaves(line)), None)
        if left is None:
            continue
        for known in moves.values():
            move = at(known, left.moment) or {}
            status = move.get("status") or {}
            is_handed = status.get("phase") == "HandingOver" and not status.get("fallback")
            if not is_handed or status.get("podUID") != uid:
                continue
            copy = pods.get((status.get("replacement") or {}).get("uid", ""), [])
            if not _is_ready(at(copy, left.moment)):
                yield Violation(
                    kind=Kind.REMOVED_BEFORE_READY,
                    revision=left.moment.revision,
                    at=left.moment.at,
                    node=left.item["spec"].get("nodeName", ""),
                    pod=left.name,
                    sums={"move": move["metadata"]["name"]},
                    text=f"its copy {copy[0].name if copy else ''} was not ready",
                )


def surge_outlived(case: Case) -> Iterator[Violation]:
    """Yield the pods that said that they surge when their move had ended long before."""
    ends = ends_of(case)
    unseen = {name for gap in case.world.history.gaps for name in gap.gone}
    for lines in by_uid(case).values():
        marked = [number for number, line in enumerate(lines) if _move_of(line)]
        if not marked or lines[0].name in unseen:
            continue
        last = lines[marked[-1]]
        end = ends.get(_move_of(last))
        if end is None:
            continue
        rest = lines[marked[-1] + 1 :]
        over = last if last.kind == "DELETED" else next(iter(rest), None)
        until = over.moment.at if over is not None else case.world.history.end
        if until > case.timing.cleaned(end.at):
            yield Violation(
                kind=Kind.SURGE_OUTLIVED,
                revision=last.moment.revision,
                at=until,
                pod=last.name,
                sums={"seconds": round(until - end.at, 1)},
                text="its move has ended, and it still says that it surges",
            )


def evicted_while_surging(case: Case) -> Iterator[Violation]:
    """Yield the pods that were evicted by moves that did not say that they fell back."""
    moves = by_name(case, "podmoves")
    for uid, lines in by_uid(case).items():
        evicted = next((line for line in lines if is_evicted(line.item)), None)
        if evicted is None:
            continue
        for known in moves.values():
            move = at(known, evicted.moment) or {}
            status = move.get("status") or {}
            is_about_it = status.get("podUID") == uid and status.get("phase") not in ENDED
            is_surging = (move.get("spec") or {}).get("mode") == "SurgeFirst"
            if is_about_it and is_surging and not status.get("fallback"):
                yield Violation(
                    kind=Kind.EVICTED_WHILE_SURGING,
                    revision=evicted.moment.revision,
                    at=evicted.moment.at,
                    pod=evicted.name,
                    sums={"move": move["metadata"]["name"]},
                    text="its move has not fallen back",
                )


def _leaves(line: Line) -> bool:
    """Return whether a pod goes, other than by an eviction."""
    is_gone = line.kind == "DELETED" or "deletionTimestamp" in line.item["metadata"]
    return is_gone and not is_evicted(line.item)


def _is_ready(pod: Mapping[str, Any] | None) -> bool:
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _move_of(line: Line) -> str:
    """Return the UID of the move that a pod says it surges for; empty for none."""
    annotations = line.item["metadata"].get("annotations") or {}
    return str(annotations.get(_SURGE, "")).rpartition("/")[2]
