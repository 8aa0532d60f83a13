"""Transitions that the steps of a move share: to another phase, to an effect, to an end.

An outcome is a phase, a reason and a message; None while the move continues.
"""

from __future__ import annotations

from dataclasses import replace

from reserver.base.clock import is_ahead
from reserver.cluster.pod import NO_CONTROLLER, PodName
from reserver.moves.effects import Effect, HoldSeat, PlaceSeatAnew
from reserver.moves.model import Move, MoveStatus, Replacement
from reserver.moves.observation import EffectAnswer, MoveTurn, Observation, ObservedPod
from reserver.moves.phases import ENDED, MoveMode, MovePhase, MoveReason
from reserver.reservations.owner import MOST_EXISTING, OwnerRule, Replaced


def arrival(move: Move, came: Replacement, seen: Observation) -> tuple[MovePhase, MoveReason, str]:
    """Return the outcome of a move whose replacement has landed."""
    said = f"{came.name} has landed on {came.node}"
    if move.spec.mode is MoveMode.EVICT_ONLY:
        return MovePhase.SUCCEEDED, MoveReason.LANDED, said
    its_seat = "" if seen.has_claimed else ", and not on its seat"
    if came.node == move.status.source:
        return MovePhase.FAILED, MoveReason.LANDED_ELSEWHERE, f"{said} again{its_seat}"
    if seen.has_strayed:
        wanted = move.spec.node or "a node with the labels of to.nodeSelector"
        return MovePhase.FAILED, MoveReason.LANDED_ELSEWHERE, f"{said}, and not on {wanted}"
    if seen.has_claimed:
        return MovePhase.SUCCEEDED, MoveReason.LANDED, said
    return MovePhase.SUCCEEDED, MoveReason.LANDED_ELSEWHERE, f"{said}, without its seat"


def unfollowable(move: Move, seen: Observation, *, is_late: bool) -> str:
    """Return why the awaited pod of a move never comes; empty if it may.

    Args:
        move: the following move.
        seen: the observation.
        is_late: the preceding move would be written by now.
    """
    after, first = move.spec.after, seen.first
    if first is None:
        said = f"there is no PodMove {after} in the namespace {move.name.namespace}"
        return said if is_late else ""
    if first.problem:
        return first.problem
    if first.phase not in ENDED or first.came.uid:
        return ""
    brought = ", and brought no pod" if first.phase is MovePhase.SUCCEEDED else ""
    return f"the PodMove {after} has {first.phase.lower()} ({first.reason}){brought}"


def withdrawn(
    seen: Observation, pod: ObservedPod | None
) -> tuple[MovePhase, MoveReason, str] | None:
    """Return the outcome of a move that is no longer needed or possible; None to continue.

    The pod is None if it has yet to come.
    """
    if pod is not None and pod.is_finished:
        return MovePhase.ABORTED, MoveReason.POD_FINISHED, "the pod has finished"
    if seen.rival:
        said = f"{seen.rival} moves the pod already; wait for it, or delete it"
        return MovePhase.ABORTED, MoveReason.MOVED_ALREADY, said
    if seen.is_needless:
        said = "no pod waits any more for the room that its group makes"
        return MovePhase.ABORTED, MoveReason.NOT_NEEDED, said
    if seen.failed_member:
        return (
            MovePhase.FAILED,
            MoveReason.GROUP_FAILED,
            f"{seen.failed_member} of its group has failed",
        )
    if seen.confined:
        return MovePhase.FAILED, MoveReason.NOT_MOVABLE, seen.confined
    return None


def unmovable(move: Move, seen: Observation, pod: ObservedPod) -> tuple[MoveReason, str] | None:
    """Return why a pod cannot be moved at all; None if it can (by the rules of `kubectl drain`)."""
    if pod.is_mirror:
        return (
            MoveReason.NOT_MOVABLE,
            "its kubelet runs the pod from a file, and no eviction ends it",
        )
    if pod.controller.kind == "DaemonSet":
        return (
            MoveReason.NOT_MOVABLE,
            "the pod belongs to its node: its DaemonSet recreates it there",
        )
    if not pod.node and move.spec.mode is not MoveMode.EVICT_ONLY:
        return None
    if pod.node in {"", move.spec.node}:
        return MoveReason.NOT_MOVABLE, f"the pod is on {pod.node or 'no node'} already"
    return _unreplaced(move, seen, pod)


def _unreplaced(move: Move, seen: Observation, pod: ObservedPod) -> tuple[MoveReason, str] | None:
    """Return why a pod's seat would have no owner, or too many; else None."""
    kind, name = pod.controller
    if pod.controller == NO_CONTROLLER and move.spec.mode is not MoveMode.EVICT_ONLY:
        said = "no controller recreates the pod; mode EvictOnly ends it for good"
        return MoveReason.NO_CONTROLLER, said
    if len(seen.waiting) > MOST_EXISTING:
        said = (
            f"{len(seen.waiting)} pods of {kind} {name} wait for a node; move it when they have one"
        )
        return MoveReason.TOO_MANY_WAIT, said
    return None


def outdated(move: Move, seen: Observation) -> str:
    """Return what has changed since the plan of a move that could begin; empty if nothing.

    Before its turn, moves of the plan that free its room may not be written yet.
    """
    if seen.turn.is_blocked and not move.spec.after:
        return seen.turn.why  # A pod that has just come may not be ready yet: wait.
    return seen.outdated if seen.turn.may_begin else ""


def gone(move: Move, pod: ObservedPod | None) -> tuple[MovePhase, MoveReason, str]:
    """Return the outcome of a move whose pod is gone or leaving without an eviction.

    A pending move of a plan fails, so that the moves that depend on it are dropped too.
    """
    said = "the pod is gone" if pod is None else "the pod is being deleted, and not for this move"
    if move.is_planned and move.status.phase is MovePhase.PENDING:
        return MovePhase.FAILED, MoveReason.PLAN_OUTDATED, said
    return MovePhase.ABORTED, MoveReason.POD_GONE, said


def refused(seen: Observation) -> tuple[MoveReason, str] | None:
    """Return why the seat or the eviction will never be allowed; None if it may be."""
    if seen.answer is EffectAnswer.SEAT_REFUSED:
        return MoveReason.SEAT_REFUSED, seen.said
    if seen.answer is EffectAnswer.EVICTION_REFUSED:
        return MoveReason.EVICTION_REFUSED, seen.said
    return None


def foreign(move: Move) -> str:
    """Return the message for a Reservation of the seat's name that is not the move's."""
    return (
        f"the reservation {move.status.seat} does not belong to this move; remove it, or move again"
    )


def unusable(move: Move, seen: Observation) -> tuple[MoveReason, str] | None:
    """Return why the present seat will never be usable; None if it may be, or without one."""
    seat = seen.seat
    if seat is None:
        return None
    if seat.is_foreign:
        return MoveReason.SEAT_REFUSED, foreign(move)
    if seat.refused:
        return MoveReason.SEAT_REFUSED, seat.refused
    if seat.impossible:
        return MoveReason.SEAT_IMPOSSIBLE, seat.impossible
    if seat.node and seat.node == move.status.source:
        return MoveReason.SEAT_IMPOSSIBLE, f"the seat is on {seat.node}, which the pod must leave"
    return None


FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 15.0
"""The first and the longest pause between evictions, in seconds; each doubles the last."""

Judged = tuple[Move, tuple[Effect, ...]]
"""A move with its next status, and its effects."""


def with_status(move: Move, **changes: object) -> Move:
    """Return a move with changed fields of its status."""
    return replace(move, status=replace(move.status, **changes))  # type: ignore[arg-type]


def finished(move: Move, now: float, phase: MovePhase, reason: MoveReason, message: str) -> Judged:
    """Return a move that ends now."""
    said = {"phase": phase, "reason": reason, "message": message, "opens_at": None}
    return with_status(move, **said, finished_at=now), ()


def ready_to_evict(move: Move, **changes: object) -> Move:
    """Return a move that will evict its pod at its turn."""
    reason, message = MoveReason.READY_TO_EVICT, "Reserver will evict the pod next"
    return with_status(move, phase=MovePhase.EVICTING, reason=reason, message=message, **changes)


def ready_to_go(move: Move, node: str) -> Move:
    """Return a move that has its seat: next it evicts the pod, or starts a copy."""
    if not move.is_surging:
        return ready_to_evict(move, target=node)
    reason, message = (
        MoveReason.WAITS_FOR_TURN,
        "Reserver will start a copy of the pod on its seat next",
    )
    return with_status(move, phase=MovePhase.SURGING, target=node, reason=reason, message=message)


def held_back(move: Move, turn: MoveTurn, *, begins: bool) -> Judged | None:
    """Return a move that has to wait, with the reason; None if it may continue."""
    if move.spec.paused:
        return with_status(move, reason=MoveReason.PAUSED, message="paused"), ()
    if turn.may_begin if begins else turn.may_evict:
        return None
    if not turn.why:
        return move, ()  # Arbitration has not decided yet.
    reason = MoveReason.BUDGET_BLOCKS if turn.is_blocked else MoveReason.WAITS_FOR_TURN
    reason = MoveReason.WAITS_FOR_GROUP if turn.waits_for_group else reason
    reason = MoveReason.WAITS_FOR_WINDOW if turn.waits_for_window else reason
    return with_status(move, reason=reason, message=turn.why), ()


def at_window(move: Move, turn: MoveTurn, now: float) -> Move:
    """Record when a move's window opens, or has opened: its timeout starts then."""
    if turn.waits_for_window:
        return with_status(move, opens_at=turn.opens_at or None)
    if move.status.opens_at is None:
        return move
    return with_status(move, opens_at=None, opened_at=now)


def answered(move: Move, seen: Observation, now: float) -> Judged:
    """Wait for the result of an eviction, or retry it with back-off."""
    if seen.answer is EffectAnswer.EVICTED:  # Not sent again until the watch shows it.
        message = f"the eviction was accepted{': ' if seen.said else ''}{seen.said}"
        return with_status(move, message=message, retry_at=now + LAST_PAUSE_S), ()
    pause = min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(move.status.attempts, 10))
    is_blocked = seen.answer is EffectAnswer.BLOCKED
    reason = MoveReason.BUDGET_BLOCKS if is_blocked else MoveReason.EVICTION_RETRIED
    tried = {"retry_at": now + pause, "attempts": move.status.attempts + 1}
    return with_status(move, reason=reason, message=seen.said, **tried), ()


def rests(move: Move, now: float) -> bool:
    """Return whether an eviction is not requested again yet."""
    return is_ahead(move.status.retry_at, now, longest_s=LAST_PAUSE_S)


def awaits_replacement(move: Move, seen: Observation) -> Move:
    """Return a move that waits for its replacement."""
    message = f"Reserver waits for the replacement on {move.status.target or 'any node'}"
    if seen.failure:
        message = f"{message}; {move.status.controller.kind} cannot create it: {seen.failure}"
    return with_status(move, reason=MoveReason.WAITS_FOR_REPLACEMENT, message=message)


def hold_seat(move: Move, pod: ObservedPod, seen: Observation) -> HoldSeat:
    """Return the effect that writes a move's seat."""
    spec, namespace = move.spec, move.name.namespace
    keeps_name = pod.controller.kind == "StatefulSet"
    owner = OwnerRule(
        namespace=namespace,
        pod=move.pod.name if keeps_name else "",
        controller=pod.controller,
        replaces=Replaced(move.status.uid, seen.waiting),
    )
    if move.is_entering:
        owner = OwnerRule(namespace=namespace, pod=move.pod.name)
    return HoldSeat(
        seat=PodName(namespace, move.status.seat),
        like=PodName(namespace, pod.name or move.pod.name),
        uid=pod.uid,
        owner=owner,
        resources=pod.requests,
        node=spec.node,
        placement=spec.placement,
        avoid=move.status.source,
        expires_at=move.seat_until,
        volume_claims=pod.volume_claims,
        copy=move.copy_name if move.is_surging and not move.is_entering else "",
    )


def place_seat_anew(move: Move, *, anywhere: bool) -> PlaceSeatAnew:
    """Return the effect that places a move's seat anew."""
    return PlaceSeatAnew(seat=PodName(move.name.namespace, move.status.seat), anywhere=anywhere)


def is_news(before: MoveStatus | None, after: MoveStatus) -> bool:
    """Return whether a status gets an event: a phase, a lost seat, a closed window, a fallback."""
    if before is None or before.phase is not after.phase:
        return True
    is_other = before.reason is not after.reason
    is_other &= after.reason in {MoveReason.SEAT_LOST, MoveReason.WAITS_FOR_WINDOW}
    return is_other or before.fallback != after.fallback
