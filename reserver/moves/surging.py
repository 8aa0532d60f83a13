"""The steps of a surging move: a copy is ready before the pod is removed (docs/adr/0085).

The ReplicaSet removes the pod, and it removes pods that are not ready first. So a ready pod is
removed only if the copy is ready too: availability never falls, and no budget is needed.
"""

from __future__ import annotations

from reserver.cluster.pod import PodName
from reserver.moves import transitions
from reserver.moves.effects import HandOver, MarkLeaving, StartCopy
from reserver.moves.model import Move, Replacement
from reserver.moves.observation import (
    EffectAnswer,
    Observation,
    ObservedCopy,
    ObservedPod,
    ObservedSurge,
)
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.transitions import (
    Judged,
    finished,
    held_back,
    hold_seat,
    place_seat_anew,
    ready_to_evict,
    with_status,
)


def has_copy(move: Move, seen: Observation) -> bool:
    """Return whether a copy of a move's pod exists, or has existed."""
    copy = seen.surge.copy if seen.surge else None
    is_there = copy is not None and not copy.is_foreign
    return move.may_have_copy and (is_there or bool(move.status.replacement.uid))


def starting(move: Move, seen: Observation, pod: ObservedPod, now: float) -> Judged:
    """Start a copy of the pod on its seat at the move's turn, or fall back to an eviction."""
    if problem := transitions.refused(seen) or transitions.unusable(move, seen):
        return finished(move, now, MovePhase.FAILED, *problem)
    if seen.surge is None:
        return move, ()
    if why := _refusal(move, seen, seen.surge) or _in_vain(move, seen.surge, now):
        return ready_to_evict(fallen_back(move, why, now), surged_at=None), ()
    if seen.seat is None or not seen.seat.is_usable:
        waiting = {"reason": MoveReason.WAITS_FOR_SEAT, "surged_at": None}
        return with_status(move, phase=MovePhase.RESERVING, **waiting), ()
    return held_back(move, seen.turn, begins=False) or _started(move, seen.surge, pod, now)


def _started(move: Move, surge: ObservedSurge, pod: ObservedPod, now: float) -> Judged:
    """Start a copy, unless the ReplicaSet would not remove the pod for it."""
    if move.status.surged_at is None and surge.others:
        others = {"reason": MoveReason.WAITS_FOR_OTHERS, "message": surge.others}
        return with_status(move, **others), ()
    if move.status.surged_at is None:
        message = f"a copy of {pod.name or move.pod.name} starts on {move.status.target}"
        return with_status(move, surged_at=now, reason=MoveReason.STARTS_COPY, message=message), ()
    name = PodName(move.name.namespace, move.copy_name)
    return move, (StartCopy(copy=name, template=surge.template, withheld=surge.withheld),)


def _refusal(move: Move, seen: Observation, surge: ObservedSurge) -> str:
    """Return why no copy can be started; empty if possible."""
    if surge.copy is not None and surge.copy.is_foreign:
        return f"there is a pod {move.copy_name} that does not belong to this move"
    return seen.said if seen.answer is EffectAnswer.COPY_REFUSED else surge.unfit


def _in_vain(move: Move, surge: ObservedSurge, now: float) -> str:
    """Return why a move stops waiting for the start of a copy after half of its time; or empty."""
    since = move.status.started_at or move.created_at
    is_late = move.status.surged_at is None and now >= (since + move.deadline) / 2
    return surge.others if is_late else ""


def fallen_back(move: Move, why: str, now: float) -> Move:
    """Return a move that evicts its pod, as the pod cannot surge."""
    return with_status(move, fallback=why, fell_back_at=now)


def surging(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged:
    """Continue with a move whose pod has, or had, a copy.

    The pod is None if gone. It may also leave for another reason: the copy then still replaces it.
    """
    surge = seen.surge
    if surge is None:
        return move, ()
    is_gone = pod is None or pod.is_leaving or pod.is_finished
    if is_gone and not surge.is_wanted:
        said = "the pod is gone, and its controller wants no replacement"
        return finished(move, now, MovePhase.SUCCEEDED, MoveReason.NOT_REPLACED, said)
    copy, recorded = surge.copy, move.status.replacement
    if copy is None or copy.is_leaving or recorded.uid not in {"", copy.uid}:
        said = f"the copy {recorded.name or move.copy_name} is gone, or is being deleted"
        return finished(move, now, MovePhase.FAILED, MoveReason.COPY_LOST, said)
    came = Replacement(copy.name, copy.uid, copy.node)
    move = with_status(move, replacement=came, target=copy.node or move.status.target)
    if copy.is_handed_over:
        return _handed_over(move, seen, now, is_gone=is_gone)
    return _with_copy(move, seen, None if is_gone else pod, copy, now)


def _with_copy(
    move: Move, seen: Observation, pod: ObservedPod | None, copy: ObservedCopy, now: float
) -> Judged:
    """Continue with a copy that is not handed over; the pod is None if leaving or gone."""
    assert seen.surge is not None  # noqa: S101 - the copy is part of it
    if ended := _given_up(move, seen, seen.surge, pod, now):
        return finished(move, now, *ended)
    if why := _hindrance(move, seen, seen.surge, copy):
        move = with_status(move, phase=MovePhase.SURGING, handed_at=None)
        return _waits(move, seen, pod, copy, why)
    return _ready(move, seen.surge, copy, now, is_gone=pod is None)


def _ready(
    move: Move, surge: ObservedSurge, copy: ObservedCopy, now: float, *, is_gone: bool
) -> Judged:
    """Mark the pod, if it exists, and then hand over the ready copy."""
    if move.status.phase is MovePhase.SURGING:
        message = f"the copy {copy.name} is ready; Reserver hands it over to its ReplicaSet"
        ready = {"reason": MoveReason.WAITS_FOR_REMOVAL, "message": message, "handed_at": now}
        return with_status(move, phase=MovePhase.HANDING_OVER, **ready), ()
    if not is_gone and not surge.leaving.is_marked:
        return move, (MarkLeaving(pod=move.pod, seen=surge.leaving),)
    owner, labels = surge.owner, surge.withheld
    hand = HandOver(namespace=move.name.namespace, copy=copy, labels=labels, owner=owner)
    return move, (hand,)


def _handed_over(move: Move, seen: Observation, now: float, *, is_gone: bool) -> Judged:
    """Wait until the ReplicaSet has removed the pod."""
    came = move.status.replacement
    if is_gone:
        left = with_status(move, evicted_at=now)
        return finished(left, now, *transitions.arrival(left, came, seen))
    owner = " ".join(move.status.controller)
    if now >= move.deadline:
        said = f"{owner} has taken {came.name}, and has kept {move.pod.name}: was it scaled up?"
        return finished(move, now, MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED, said)
    message = f"{owner} has taken {came.name}, and is to remove {move.pod.name}"
    waiting = {"reason": MoveReason.WAITS_FOR_REMOVAL, "message": message}
    return with_status(move, phase=MovePhase.HANDING_OVER, **waiting), ()


def _given_up(
    move: Move, seen: Observation, surge: ObservedSurge, pod: ObservedPod | None, now: float
) -> tuple[MovePhase, MoveReason, str] | None:
    """Return the outcome of a move that has to give up its copy; None to continue.

    The pod is None if leaving or gone.
    """
    if withdrawn := transitions.withdrawn(seen, pod):
        return withdrawn
    if surge.unfit:
        return MovePhase.FAILED, MoveReason.SURGE_OVERTAKEN, surge.unfit
    if seen.answer is EffectAnswer.HANDOVER_REFUSED:
        return MovePhase.FAILED, MoveReason.HANDOVER_REFUSED, seen.said
    came = move.status.replacement
    if came.node and (came.node == move.status.source or seen.has_strayed):
        return transitions.arrival(move, came, seen)
    if now < move.deadline:
        return None
    copy = surge.copy
    why = (copy.said if copy and not copy.is_ready else "") or move.status.message
    said = f"{came.name} was not ready to take over in time: {why}"
    return MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED, said


def _hindrance(
    move: Move, seen: Observation, surge: ObservedSurge, copy: ObservedCopy
) -> tuple[MoveReason, str] | None:
    """Return why the copy may not be handed over yet; None if it may."""
    if not copy.is_ready:
        where = f" on {copy.node}" if copy.node else ""
        said = f"the copy {copy.name} is not ready{where} yet"
        return MoveReason.WAITS_FOR_COPY, f"{said}: {copy.said}" if copy.said else said
    if waits := held_back(move, seen.turn, begins=False):
        status = waits[0].status
        return status.reason or MoveReason.WAITS_FOR_TURN, status.message
    return (MoveReason.WAITS_FOR_OTHERS, surge.others) if surge.others else None


def _waits(
    move: Move,
    seen: Observation,
    pod: ObservedPod | None,
    copy: ObservedCopy,
    why: tuple[MoveReason, str],
) -> Judged:
    """Wait for the copy; while it has no node, restore or replace its seat if needed."""
    reason, message = why
    move = with_status(move, reason=reason, message=message)
    seat = seen.seat
    if copy.node or move.spec.paused:
        return move, ()
    if seat is None:
        return move, (hold_seat(move, pod, seen),) if pod is not None else ()
    may_go = seat.closed and not seat.is_foreign and not move.spec.node
    return move, (place_seat_anew(move, anywhere=False),) if may_go else ()
