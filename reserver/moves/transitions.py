"""The transitions that the steps of a move share: to another phase, to waiting, to an effect."""

from __future__ import annotations

from dataclasses import replace

from reserver.cluster.pod import PodName
from reserver.moves.effects import Effect, HoldSeat, PlaceSeatAnew
from reserver.moves.model import Move, MoveStatus
from reserver.moves.observation import EffectAnswer, MoveTurn, Observation, ObservedPod
from reserver.moves.phases import MovePhase, MoveReason
from reserver.reservations.owner import OwnerRule, Replaced

FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 15.0
"""The first and the longest pause between attempts to evict, in seconds; each doubles the last."""

Judged = tuple[Move, tuple[Effect, ...]]
"""A move with its next status, and the effects that follow from it."""


def with_status(move: Move, **changes: object) -> Move:
    """Return a move with another status."""
    return replace(move, status=replace(move.status, **changes))  # type: ignore[arg-type]


def finished(move: Move, now: float, phase: MovePhase, reason: MoveReason, message: str) -> Judged:
    """Return a move that ends now."""
    return with_status(move, phase=phase, reason=reason, message=message, finished_at=now), ()


def ready_to_evict(move: Move, **changes: object) -> Move:
    """Return a move whose pod is to be evicted as soon as it is its turn."""
    reason, message = MoveReason.READY_TO_EVICT, "the pod is to be evicted"
    return with_status(move, phase=MovePhase.EVICTING, reason=reason, message=message, **changes)


def ready_to_go(move: Move, node: str) -> Move:
    """Return a move that has its seat: its pod is to be evicted, or a copy of it is started."""
    if not move.is_surging:
        return ready_to_evict(move, target=node)
    reason, message = MoveReason.WAITS_FOR_TURN, "a copy of the pod is to be started on its seat"
    return with_status(move, phase=MovePhase.SURGING, target=node, reason=reason, message=message)


def held_back(move: Move, turn: MoveTurn, *, begins: bool) -> Judged | None:
    """Return a move that may not go on now; None if it may."""
    if move.spec.paused:
        return with_status(move, reason=MoveReason.PAUSED, message="paused"), ()
    if turn.may_begin if begins else turn.may_evict:
        return None
    if not turn.why:
        return move, ()  # It is being asked.
    reason = MoveReason.BUDGET_BLOCKS if turn.is_blocked else MoveReason.WAITS_FOR_TURN
    reason = MoveReason.WAITS_FOR_GROUP if turn.waits_for_group else reason
    reason = MoveReason.WAITS_FOR_WINDOW if turn.waits_for_window else reason
    return with_status(move, reason=reason, message=turn.why), ()


def at_window(move: Move, turn: MoveTurn, now: float) -> Move:
    """Return a move that knows when its window opens, or had opened: its time runs from then."""
    if turn.waits_for_window:
        return with_status(move, opens_at=turn.opens_at or None)
    if move.status.opens_at is None:
        return move
    return with_status(move, opens_at=None, opened_at=now)


def answered(move: Move, seen: Observation, now: float) -> Judged:
    """Wait for what follows from an eviction, or send it again, a little later each time."""
    if seen.answer is EffectAnswer.EVICTED:  # Until the watch shows it, it is not sent again.
        message = f"the eviction was accepted{': ' if seen.said else ''}{seen.said}"
        return with_status(move, message=message, retry_at=now + LAST_PAUSE_S), ()
    pause = min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(move.status.attempts, 10))
    is_blocked = seen.answer is EffectAnswer.BLOCKED
    reason = MoveReason.BUDGET_BLOCKS if is_blocked else MoveReason.EVICTION_RETRIED
    tried = {"retry_at": now + pause, "attempts": move.status.attempts + 1}
    return with_status(move, reason=reason, message=seen.said, **tried), ()


def awaits_replacement(move: Move, seen: Observation) -> Move:
    """Return a move whose replacement is awaited."""
    message = f"the replacement is awaited on {move.status.target or 'any node'}"
    if seen.failure:
        message = f"{message}; {move.status.controller.kind} cannot make it: {seen.failure}"
    return with_status(move, reason=MoveReason.WAITS_FOR_REPLACEMENT, message=message)


def hold_seat(move: Move, pod: ObservedPod, seen: Observation) -> HoldSeat:
    """Return the seat that a move needs for its pod."""
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
    """Return that the seat of a move is to have another place."""
    return PlaceSeatAnew(seat=PodName(move.name.namespace, move.status.seat), anywhere=anywhere)


def is_news(before: MoveStatus | None, after: MoveStatus) -> bool:
    """Return whether an Event says a status: of each phase, a lost seat and a closed window."""
    if before is None or before.phase is not after.phase:
        return True
    is_other = before.reason is not after.reason
    is_other &= after.reason in {MoveReason.SEAT_LOST, MoveReason.WAITS_FOR_WINDOW}
    return is_other or before.fallback != after.fallback
