"""Had a pod that was evicted for a move a seat that it can use, until it landed, and no longer?

All of it is judged by what PodMoves, pods, volumes and Reservations said at the moment: nothing of
Reserver's own state machine is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from hack.promises.case import Case
from hack.promises.gaps import gap_over, gaps_of
from hack.promises.history import Line, Moment
from hack.promises.objects import ENDED, at, by_name, by_uid, ends_of, is_evicted, phase
from hack.promises.report import Kind, Violation
from reserver.errors import InvalidInput
from reserver.k8s.objects.move_windows import parse

_AFTER_EVICTION = frozenset({"Landed", "LandedElsewhere", "NotReplaced", "DeadlineExceeded"})
_GOING = frozenset({"Landing", "HandingOver"})
_SEATLESS = frozenset({"", "Pending", "Reserving", "Failed"})
_HOSTNAME = "kubernetes.io/hostname"
_WINDOW = "reserver.io/move-window"
_SLACK_S = 5.0
"""Seconds from the decision of an eviction until a watch shows it."""


def evicted_without_seat(case: Case) -> Iterator[Violation]:
    """Yield the evictions of moved pods for which no seat was held.

    Where moves are recorded, only Reserver evicts.
    """
    moves, seats = by_name(case, "podmoves"), by_name(case, "reservations")
    for lines in by_uid(case).values():
        moment = next((line.moment for line in lines if is_evicted(line.item)), None)
        if moment is None:
            continue
        pod = lines[0]
        for known in moves.values():
            move = at(known, moment)
            if move is None or not _asks_for_seat(move, pod.item["metadata"]["uid"]):
                continue
            name = _seat_name(at(known, _shown_at(case, moment)) or move)
            last = lines[-1]
            node = last.item["spec"].get("nodeName", "")
            if problem := _problem(case, name, seats.get(name, []), moment, last):
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


def evicted_before_group(case: Case) -> Iterator[Violation]:
    """Yield the pods that a move removed before each member of its group has had a seat.

    A member that is no longer needed (Aborted) needs none. A group belongs to a namespace; those
    that span namespaces are not judged.
    """
    moves, pods = by_name(case, "podmoves"), by_uid(case)
    for known in moves.values():
        going = next((line for line in known if phase(line) in _GOING), None)
        group = known[0].item["spec"].get("group") or {}
        if going is None or group.get("size", 1) == 1 or group.get("acrossNamespaces"):
            continue
        uid = going.item["status"].get("podUID", "")
        is_surge = phase(going) == "HandingOver"
        lines = pods.get(uid, ())
        gone = (
            line for line in lines if is_evicted(line.item) or (is_surge and line.kind == "DELETED")
        )
        went = next(gone, None)
        space, until = going.item["metadata"]["namespace"], _shown_at(case, going.moment)
        alike = (each for each in moves.values() if each[0].item["spec"].get("group") == group)
        members = [each for each in alike if each[0].item["metadata"]["namespace"] == space]
        seated = sum(any(_is_seated(line, until) for line in each) for each in members)
        if went is not None and seated < group["size"]:
            yield Violation(
                kind=Kind.EVICTED_BEFORE_GROUP,
                revision=went.moment.revision,
                at=went.moment.at,
                pod=went.name,
                sums={"move": going.item["metadata"]["name"]},
                text=f"{seated} of the {group['size']} moves of its group had seats",
            )


def _is_seated(line: Line, until: Moment) -> bool:
    """Return whether a move has a seat, or had one until it landed, before a moment."""
    return line.moment.revision < until.revision and phase(line) not in _SEATLESS


def evicted_outside_window(case: Case) -> Iterator[Violation]:
    """Yield the evictions, by moves that were not urgent, of pods whose annotation did not let."""
    moves = by_name(case, "podmoves")
    for lines in by_uid(case).values():
        evicted = next((line for line in lines if is_evicted(line.item)), None)
        if evicted is None:
            continue
        text = (evicted.item["metadata"].get("annotations") or {}).get(_WINDOW, "")
        uid, moment = evicted.item["metadata"]["uid"], evicted.moment
        for known in moves.values():
            move = at(known, moment) or {}
            status = move.get("status") or {}
            is_about_it = status.get("podUID") == uid and status.get("phase") not in ENDED
            if not is_about_it or move["spec"].get("urgent") or _is_open(text, moment.at):
                continue
            yield Violation(
                kind=Kind.EVICTED_OUTSIDE_WINDOW,
                revision=moment.revision,
                at=moment.at,
                pod=evicted.name,
                sums={"move": move["metadata"]["name"]},
                text=f"its annotation says {text!r}",
            )


def _is_open(text: str, at: float) -> bool:
    """Return whether a window was open within the last seconds; one without text always is."""
    if not text:
        return True
    try:
        schedule = parse(text)
    except InvalidInput:
        return False
    begin = datetime.fromtimestamp(at - schedule.duration - _SLACK_S, ZoneInfo(schedule.zone))
    return next(CronSim(schedule.cron, begin)).timestamp() <= at


def seat_given_up(case: Case) -> Iterator[Violation]:
    """Yield the seats that were deleted between eviction and landing, and moves that ended so.

    Where moves are recorded, only Reserver deletes seats. A pod that has claimed its seat needs the
    seat no more.
    """
    seats = by_name(case, "reservations")
    for lines in by_name(case, "podmoves").values():
        landing = [line for line in lines if phase(line) == "Landing"]
        if not landing or not landing[0].item["status"].get("reservation"):
            continue
        move, began = landing[0].item, landing[0].moment
        name = f"{move['metadata']['namespace']}/{move['status']['reservation']}"
        over = (line for line in lines if phase(line) in ENDED or line.kind == "DELETED")
        end = next(over, None)
        text = ""
        if end is not None and end.kind != "DELETED":
            reason = end.item["status"].get("reason", "")
            text = "" if reason in _AFTER_EVICTION else f"its move ended as {reason}"
        until = end.moment.revision if end is not None else began.revision
        for line in seats.get(name, ()):
            is_between = began.revision < line.moment.revision < until
            if line.kind == "DELETED" and is_between and not _claimed_on(case, name):
                text = "it went before anybody had landed on it"
        if text:
            yield Violation(
                kind=Kind.SEAT_GIVEN_UP,
                revision=until,
                at=end.moment.at if end is not None else began.at,
                pod=f"{move['metadata']['namespace']}/{move['spec']['pod']['name']}",
                entry=name,
                sums={"move": move["metadata"]["name"]},
                text=text,
            )


def seat_outlived(case: Case) -> Iterator[Violation]:
    """Yield the seats that stood when their move had ended long before."""
    ends = ends_of(case)
    unseen = {name for gap in case.world.history.gaps for name in gap.gone}
    for name, lines in by_name(case, "reservations").items():
        made_by = _move_of(lines[-1].item)
        end = ends.get(made_by)
        if end is None or name in unseen:
            continue
        due = case.timing.cleaned(end.at)
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


def _shown_at(case: Case, moment: Moment) -> Moment:
    """Return when it shows what PodMoves said at a moment: after a gap, if it is in one."""
    gap = gap_over(moment, gaps_of(case.world.history, "podmoves"))
    return moment._replace(revision=gap.until.revision + 1) if gap else moment


def _seat_name(move: Mapping[str, Any]) -> str:
    return f"{move['metadata']['namespace']}/{(move.get('status') or {}).get('reservation', '')}"


def _problem(case: Case, name: str, seat: list[Line], moment: Moment, pod: Line) -> str:
    """Return the problem of a seat at a moment; empty if it was held and backed.

    Its status is written a moment later, and never for a seat that is claimed at once. A gap hides
    both until its end.
    """
    node = pod.item["spec"].get("nodeName", "")
    gap = gap_over(moment, gaps_of(case.world.history, "reservations"))
    known = gap.until.revision if gap else moment.revision - 1
    claimed_on = _claimed_on(case, name)
    there = at(seat, moment._replace(revision=known + 1))
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
    if volume := _out_of_reach(case, moment, pod, nodes - {"", node}):
        return f"no node of its seat can use its volume {volume}"
    return "" if is_backed or claimed_on else "its seat was not backed"


def _out_of_reach(case: Case, moment: Moment, pod: Line, nodes: set[str]) -> str:
    """Return a volume of a pod that none of these nodes can use; empty for none.

    Only host names in the affinity of volumes are judged; they equal the names of nodes here.
    """
    claims = by_name(case, "persistentvolumeclaims")
    volumes = by_name(case, "persistentvolumes")
    for each in pod.item["spec"].get("volumes") or ():
        named = (each.get("persistentVolumeClaim") or {}).get("claimName", "")
        claim = at(claims.get(f"{pod.item['metadata']['namespace']}/{named}", []), moment)
        volume = (claim or {}).get("spec", {}).get("volumeName", "")
        there = at(volumes.get(f"/{volume}", []), moment)
        hosts = _hosts(there or {})
        if hosts and not hosts & nodes:
            return str(volume)
    return ""


def _hosts(volume: Mapping[str, Any]) -> set[str]:
    affinity = volume.get("spec", {}).get("nodeAffinity") or {}
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or ()
    return {
        value
        for term in terms
        for asked in term.get("matchExpressions") or ()
        if asked["key"] == _HOSTNAME
        for value in asked["values"]
    }


def _claimed_on(case: Case, name: str) -> set[str]:
    """Return the nodes of the pods that have claimed a seat."""
    pods = [pod for pod in case.world.pods if name in pod.claims]
    return {state.node for pod in pods for state in pod.states if state.node}


def _backed(status: Mapping[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return conditions.get("Backed") == "True" or status.get("phase") == "Claimed"


def _asks_for_seat(move: Mapping[str, Any], uid: str) -> bool:
    """Return whether a move was to evict a pod only once it had a seat."""
    status = move.get("status") or {}
    is_open = status.get("phase") not in ENDED
    return is_open and status.get("podUID") == uid and move["spec"].get("mode") != "EvictOnly"


def _move_of(item: Mapping[str, Any]) -> str:
    """Return the UID of the PodMove that a Reservation belongs to; empty if it does to none."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each["kind"] == "PodMove"), "")
