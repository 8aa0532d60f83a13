"""The state machine of a move: move, observation and time in; move and effects out.

A step is decided on the observation, not on earlier requests, so it may be repeated at any time:
after a crash between the status and an effect, the next step observes that the effect is missing
and returns it again. The controller writes the new status first, and then executes the effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.moves import transitions
from reserver.moves.effects import Effect, EvictPod, ReleaseSeat
from reserver.moves.migrations import BEFORE_IT_GOES, failed, migrating
from reserver.moves.model import Move
from reserver.moves.observation import EffectAnswer, Observation, ObservedPod, ObservedSeat
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.moves.surging import fallen_back, has_copy, starting, surging
from reserver.moves.transitions import (
    Judged,
    answered,
    at_window,
    awaits_replacement,
    finished,
    held_back,
    hold_seat,
    place_seat_anew,
    ready_to_evict,
    ready_to_go,
    rests,
    with_status,
)

FIRST_WRITTEN_S = 30.0
"""The time after a move's creation within which its dependency may be written, in seconds."""


class MoveStep(NamedTuple):
    """The result of a step: the move's next status, and effects.

    Attributes:
        move: the move with its next status.
        effects: the effects to execute once the status is written.
        again_at: the time of the next step even without a change, unix seconds; None once the
            move has ended.
    """

    move: Move
    effects: tuple[Effect, ...] = ()
    again_at: float | None = None


def advance(move: Move, seen: Observation, now: float) -> MoveStep:
    """Return the next step of a move now (unix seconds), given an observation.

    It passes through as many phases as it can, and returns the effects of the last one. It stops in
    Landing: only then is the replacement searched, and a missing seat may have been claimed.
    """
    move = with_status(move, attended_since=seen.attended_since)
    while True:
        after, effects = _ended(move, seen) if move.is_over else _judge(move, seen, now)
        if after.status.phase in {move.status.phase, MovePhase.LANDING}:
            return MoveStep(after, effects, _again_at(after, now))
        move, seen = after, replace(seen, answer=None, said="")


_MAY_HAVE_EVICTED = frozenset({EffectAnswer.EVICTED, EffectAnswer.UNSURE})


def _judge(move: Move, seen: Observation, now: float) -> Judged:
    pod = _the_pod(move, seen)
    if move.status.phase in BEFORE_IT_GOES and seen.replacement.uid:
        return migrating(move, seen, pod, now)
    if move.status.phase is MovePhase.EVICTING and (judged := _in_doubt(move, seen, pod, now)):
        return judged
    if has_copy(move, seen):
        return surging(move, seen, pod, now)
    if now >= move.deadline:
        said = _last_words(move, seen)
        return finished(move, now, MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED, said)
    if move.awaits_first or move.status.phase is MovePhase.LANDING:
        return (_following if move.awaits_first else _landing)(move, seen, now)
    return _staying(move, seen, pod, now)


def _in_doubt(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged | None:
    """Continue with a pod that may have been evicted; None if it was not.

    Until that is clear, nothing else may end the move and release the seat of the evicted pod.
    """
    if pod is None or pod.is_leaving:
        return _left(move, seen, pod, now)
    if seen.answer in _MAY_HAVE_EVICTED:
        return answered(move, seen, now)
    is_awaited = move.status.reason is not MoveReason.BUDGET_BLOCKS and rests(move, now)
    return (move, ()) if is_awaited else None


def _staying(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged:
    """Continue with a move whose pod has not been evicted."""
    if pod is None or pod.is_leaving:
        return _left(move, seen, pod, now)
    if move.is_entering and pod.node:
        return _entered(move, seen, pod, now)
    if withdrawn := transitions.withdrawn(seen, pod):
        return finished(move, now, *withdrawn)
    if move.status.phase is MovePhase.RESERVING and (lost := failed(move, seen, pod)):
        return lost
    return _PHASES[move.status.phase](move, seen, pod, now)


def _ended(move: Move, seen: Observation) -> Judged:
    """Release the seat that an ended move still holds."""
    if not move.status.seat or seen.seat is None or seen.seat.is_foreign:
        return move, ()
    return move, (ReleaseSeat(seat=PodName(move.name.namespace, move.status.seat)),)


def _left(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged:
    """Continue with a pod that is being deleted, or is gone, by any client.

    If another client deletes the pod, its replacement can still use a backed seat.
    """
    seat = seen.seat
    is_of_use = seat is not None and seat.is_usable and transitions.unusable(move, seen) is None
    by_itself = move.status.phase is not MovePhase.EVICTING
    if by_itself and (move.is_entering or not (pod and is_of_use)):
        return finished(move, now, *transitions.gone(move, pod))
    target = seat.node if seat is not None and is_of_use else move.status.target
    landing = with_status(move, phase=MovePhase.LANDING, target=target, evicted_at=now)
    return awaits_replacement(landing, seen), ()


def _following(move: Move, seen: Observation, now: float) -> Judged:
    """Wait for the pod that the preceding move brings."""
    is_late = now >= move.created_at + FIRST_WRITTEN_S
    if problem := transitions.unfollowable(move, seen, is_late=is_late):
        return finished(move, now, MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW, problem)
    if withdrawn := transitions.withdrawn(seen, None):
        return finished(move, now, *withdrawn)
    if seen.first is None or not seen.first.came.uid:
        message = f"Reserver waits for the PodMove {move.spec.after}, which brings the pod"
        return with_status(move, reason=MoveReason.WAITS_FOR_MOVE, message=message), ()
    came = seen.first.came
    message = f"the PodMove {move.spec.after} has brought {came.name}"
    found = with_status(move, pod=came.name, uid=came.uid, found_at=now, source=came.node)
    return with_status(found, reason=MoveReason.WAITS_FOR_TURN, message=message), ()


def _pending(move: Move, seen: Observation, pod: ObservedPod, now: float) -> Judged:
    """Wait for the move's turn."""
    if problem := transitions.unmovable(move, seen, pod):
        return finished(move, now, MovePhase.FAILED, *problem)
    move = with_status(move, uid=pod.uid, controller=pod.controller, source=pod.node)
    if move.is_planned and (why := transitions.outdated(move, seen)):
        return finished(move, now, MovePhase.FAILED, MoveReason.PLAN_OUTDATED, why)
    move = at_window(move, seen.turn, now)
    if waits := held_back(move, seen.turn, begins=True):
        return waits
    surges = move.is_surging and not move.is_entering
    if surges and seen.surge is not None and seen.surge.unfit:
        message = f"Reserver evicts the pod, because it cannot surge: {seen.surge.unfit}"
        waiting = {"reason": MoveReason.WAITS_FOR_TURN, "message": message}
        return with_status(fallen_back(move, seen.surge.unfit, now), **waiting), ()
    if move.spec.mode is MoveMode.EVICT_ONLY:
        return ready_to_evict(move, started_at=now), ()
    return with_status(move, phase=MovePhase.RESERVING, seat=move.seat_name, started_at=now), ()


def _reserving(move: Move, seen: Observation, pod: ObservedPod, now: float) -> Judged:
    """Write the seat, and wait until it is backed, or until a pod without a node has landed."""
    if problem := transitions.refused(seen) or transitions.unusable(move, seen):
        return finished(move, now, MovePhase.FAILED, *problem)
    seat = seen.seat
    if seat is None and move.spec.paused:
        return with_status(move, reason=MoveReason.PAUSED, message="paused"), ()
    if seat is None:
        message = "Reserver is writing the seat"
        move = with_status(move, target="", reason=MoveReason.WAITS_FOR_SEAT, message=message)
        return move, (hold_seat(move, pod, seen),)
    if not seat.is_usable:
        message = seat.problem or "the seat waits for room"
        waiting = {"reason": MoveReason.WAITS_FOR_SEAT, "message": message}
        move = with_status(move, target=seat.node, **waiting)
        may_go = seat.closed and seat.node and not move.spec.node
        has_volumes = pod.volume_claims and not seat.node  # No watch shows when these change.
        return move, (place_seat_anew(move, anywhere=False),) if may_go or has_volumes else ()
    if move.is_entering:
        message = f"the seat is held on {seat.node}; the pod has not landed yet"
        waiting = {"reason": MoveReason.WAITS_FOR_POD, "message": message}
        return with_status(move, target=seat.node, **waiting), ()
    return ready_to_go(move, seat.node), ()


def _entered(move: Move, seen: Observation, pod: ObservedPod, now: float) -> Judged:
    """End the move of a pod that had no node and is bound now."""
    said = f"{move.pod.name} has landed on {pod.node}"
    reason = MoveReason.LANDED if seen.has_claimed else MoveReason.LANDED_ELSEWHERE
    said += "" if seen.has_claimed else ", without its seat"
    return finished(with_status(move, target=pod.node), now, MovePhase.SUCCEEDED, reason, said)


def _evicting(move: Move, seen: Observation, pod: ObservedPod, now: float) -> Judged:
    """Evict the pod once allowed, never without a held and backed seat (but for EvictOnly)."""
    if problem := transitions.refused(seen) or transitions.unusable(move, seen):
        return finished(move, now, MovePhase.FAILED, *problem)
    takes_seat = move.spec.mode is not MoveMode.EVICT_ONLY
    if takes_seat and (seen.seat is None or not seen.seat.is_usable):
        return with_status(move, phase=MovePhase.RESERVING, reason=MoveReason.WAITS_FOR_SEAT), ()
    if seen.answer is not None:
        return answered(move, seen, now)
    if waits := held_back(move, seen.turn, begins=False):
        return waits
    if rests(move, now):
        return move, ()
    evict = EvictPod(pod=move.pod, uid=pod.uid, grace_period_s=move.spec.grace_period_s)
    return ready_to_evict(move), (evict,)


def _landing(move: Move, seen: Observation, now: float) -> Judged:
    """Wait until the replacement has landed, or no replacement is expected."""
    came = seen.replacement
    if came.uid:
        move = with_status(move, replacement=came, target=came.node)
        return finished(move, now, *transitions.arrival(move, came, seen))
    if not seen.is_replaced and _the_pod(move, seen) is None:
        said = "the pod is gone, and its controller wants no replacement"
        return finished(move, now, MovePhase.SUCCEEDED, MoveReason.NOT_REPLACED, said)
    seat = seen.seat
    if not move.status.seat or (seat is not None and (seat.is_usable or seat.is_claimed)):
        target = seat.node if seat is not None and seat.is_usable else move.status.target
        return awaits_replacement(with_status(move, target=target), seen), ()
    return _seatless(move, seen, seat)


def _seatless(move: Move, seen: Observation, seat: ObservedSeat | None) -> Judged:
    """Get another seat for an evicted pod; the present seat is kept until then."""
    effects: tuple[Effect, ...] = ()
    if seat is None and seen.heir is None:
        message = f"the reservation {move.status.seat} was removed; Reserver writes it again for"
        message += " the replacement, once that is there"
    elif seat is None and seen.heir is not None:
        message = f"the reservation {move.status.seat} was removed; Reserver writes it again"
        effects = (hold_seat(move, seen.heir, seen),)
    elif seat is not None and seat.is_foreign:
        message = transitions.foreign(move)
    else:
        problem = seat.problem if seat is not None else ""
        message = f"Reserver looks for another node for the seat: {problem or 'it has no node'}"
        effects = (place_seat_anew(move, anywhere=True),)
    return with_status(move, reason=MoveReason.SEAT_LOST, message=message), effects


_PHASES: dict[MovePhase, Callable[[Move, Observation, ObservedPod, float], Judged]] = {
    MovePhase.PENDING: _pending,
    MovePhase.RESERVING: _reserving,
    MovePhase.EVICTING: _evicting,
    MovePhase.SURGING: starting,
    MovePhase.HANDING_OVER: starting,
}


def _the_pod(move: Move, seen: Observation) -> ObservedPod | None:
    """Return the pod to move; None if gone, or if another pod has its name."""
    wanted = move.status.uid or move.spec.uid
    return None if seen.pod is None or wanted not in {"", seen.pod.uid} else seen.pod


def _last_words(move: Move, seen: Observation) -> str:
    status = move.status
    said = f"timed out in phase {status.phase}: {status.message or 'no pod came'}"
    if status.phase is MovePhase.LANDING and status.seat and seen.heir is not None:
        said += f"; {seen.heir.name} waits for a node, and has no seat any more"
    return said


def _again_at(move: Move, now: float) -> float | None:
    if move.is_over:
        return None
    if move.awaits_first:
        return now + FIRST_WRITTEN_S
    retry_at = move.status.retry_at
    if retry_at <= now:
        return move.deadline
    return min(move.deadline, retry_at) if move.deadline > now else retry_at
