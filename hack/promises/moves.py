"""Was a pod evicted whose move had no seat, and did a seat outlive its move?

Both are judged by what PodMoves, pods and Reservations said at the moment: nothing of Reserver's
own state machine is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hack.promises.case import Case
from hack.promises.gaps import gap_over, gaps_of
from hack.promises.history import Line, Moment
from hack.promises.report import Kind, Violation

_ENDED = frozenset({"Succeeded", "Failed", "Aborted"})


def evicted_without_seat(case: Case) -> Iterator[Violation]:
    """Yield the evictions of pods that a move was about, and for which no seat was held.

    Whoever evicts: where moves are recorded, nobody else does.
    """
    moves, seats = _by_name(case, "podmoves"), _by_name(case, "reservations")
    for lines in _by_uid(case).values():
        moment = next((line.moment for line in lines if _is_evicted(line.item)), None)
        if moment is None:
            continue
        pod = lines[0]
        for known in moves.values():
            move = _at(known, moment)
            if move is None or not _asks_for_seat(move, pod.item["metadata"]["uid"]):
                continue
            name = f"{move['metadata']['namespace']}/{move['status'].get('reservation', '')}"
            node = next(each.item["spec"].get("nodeName", "") for each in reversed(lines))
            if problem := _problem(case, name, seats.get(name, []), moment, node):
                yield Violation(
                    kind=Kind.EVICTED_WITHOUT_SEAT,
                    revision=moment.revision,
                    at=moment.at,
                    node=node,
                    pod=pod.name,
                    entry=name,
                    sums={"move": move["metadata"]["name"], "phase": move["status"].get("phase")},
                    text=problem,
                )


def seat_outlived(case: Case) -> Iterator[Violation]:
    """Yield the seats that stood when their move had ended long before."""
    ends: dict[str, Moment] = {}
    for known in _by_name(case, "podmoves").values():
        for line in known:
            status = line.item.get("status") or {}
            if line.kind == "DELETED" or status.get("phase") in _ENDED:
                ends.setdefault(line.item["metadata"]["uid"], line.moment)
    unseen = {name for gap in case.world.history.gaps for name in gap.gone}
    for name, lines in _by_name(case, "reservations").items():
        made_by = _move_of(lines[-1].item)
        end = ends.get(made_by)
        if end is None or name in unseen:
            continue
        due = case.timing.latest(end.at) + case.rules.cleaner_s
        is_gone = lines[-1].kind == "DELETED"
        until = lines[-1].moment.at if is_gone else case.world.history.end
        if until > due:
            yield Violation(
                kind=Kind.SEAT_OUTLIVED,
                revision=lines[-1].moment.revision,
                at=until,
                entry=name,
                sums={"seconds": round(until - end.at, 1)},
                text="its move had ended" if is_gone else "its move has ended, and it stands",
            )


def _problem(case: Case, name: str, seat: list[Line], moment: Moment, node: str) -> str:
    """Return what a seat lacked at a moment; empty if it was held and backed.

    That it was is written a moment later; what was claimed at once need never have been. What a gap
    hides shows at its end: the seat, or who has claimed it.
    """
    gap = gap_over(moment, gaps_of(case.world.history, "reservations"))
    known = gap.until.revision if gap else moment.revision - 1
    claimed_on = _claimed_on(case, name)
    there = _at(seat, moment._replace(revision=known + 1))
    if there is None:
        return "" if gap and claimed_on - {node} else "it was evicted without a seat"
    until = case.timing.latest(moment.at)
    nodes = {there["spec"].get("node") or ""} | (claimed_on if gap else set())
    is_backed = False
    for line in seat:
        if line.moment.at <= until or line.moment.revision <= max(known, moment.revision):
            status = line.item.get("status") or {}
            nodes |= {part["node"] for part in status.get("placements") or ()}
            is_backed = _backed(status) if status.get("conditions") else is_backed
            if line.moment.revision > moment.revision and is_backed:
                break
    if nodes <= {"", node}:
        return "its seat was on no other node"
    return "" if is_backed or claimed_on else "its seat was not backed"


def _claimed_on(case: Case, name: str) -> set[str]:
    """Return the nodes of the pods that have claimed a seat."""
    pods = [pod for pod in case.world.pods if name in pod.claims]
    return {state.node for pod in pods for state in pod.states if state.node}


def _backed(status: Mapping[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return conditions.get("Backed") == "True" or status.get("phase") == "Claimed"


def _is_evicted(item: Mapping[str, Any]) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(
        each["type"] == "DisruptionTarget" and each.get("reason") == "EvictionByEvictionAPI"
        for each in conditions
    )


def _asks_for_seat(move: Mapping[str, Any], uid: str) -> bool:
    """Return whether a move was to evict a pod only once it had a seat."""
    status = move.get("status") or {}
    is_open = status.get("phase") not in _ENDED
    return (
        is_open
        and status.get("podUID") == uid
        and move["spec"].get("mode", "ReserveFirst") == "ReserveFirst"
    )


def _move_of(item: Mapping[str, Any]) -> str:
    """Return the UID of the PodMove that a Reservation belongs to; empty if it does to none."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each["kind"] == "PodMove"), "")


def _at(lines: list[Line], moment: Moment) -> Mapping[str, Any] | None:
    """Return what an object was just before a moment; None if there was none."""
    before = [line for line in lines if line.moment.revision < moment.revision]
    return before[-1].item if before and before[-1].kind != "DELETED" else None


def _by_name(case: Case, collection: str) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in case.world.history.lines:
        if line.collection == collection:
            found.setdefault(line.name, []).append(line)
    return found


def _by_uid(case: Case) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in case.world.history.lines:
        if line.collection == "pods":
            found.setdefault(line.item["metadata"]["uid"], []).append(line)
    return found
