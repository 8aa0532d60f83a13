"""The state machine of a move: move, observation and time in; move and effects out.

A step looks at what is there and not at what it sent before, so that it may be made again at any
time: after a crash between the status and an effect the next step finds the effect undone and asks
for it again. Whoever carries steps out writes the new status first, and then does the effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.migration import ends
from reserver.migration.effects import Effect, Evict, Hold, Release, Reseat
from reserver.migration.move import Mode, Move, Phase, Reason
from reserver.migration.seen import Answer, Seen, SeenPod, SeenSeat, Turn
from reserver.reservations.owner import OwnerRule, Replaced

FIRST_WRITTEN_S = 30.0
"""So long after a move was created the one that it follows may be written, in seconds."""

FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 15.0
"""Between attempts to evict a pod that a budget keeps: twice as long each time, at most."""


class Step(NamedTuple):
    """The result of a step: the move's next status, and effects.

    Attributes:
        move: as it is from now on.
        effects: what is to be done once its status is written.
        again_at: when the next step is due, even if nothing is seen to change; unix seconds. None
            once it has ended.
    """

    move: Move
    effects: tuple[Effect, ...] = ()
    again_at: float | None = None


def advance(move: Move, seen: Seen, now: float) -> Step:
    """Return what becomes of a move now (unix seconds), given what is seen.

    It passes through as many phases as it can; the effects are those of the last one. In Landing it
    stops: only then is the replacement looked for, and a seat that went may have been claimed.
    """
    while True:
        after, effects = _ended(move, seen) if move.is_over else _judge(move, seen, now)
        if after.status.phase in {move.status.phase, Phase.LANDING}:
            return Step(after, effects, _again_at(after, now))
        move, seen = after, replace(seen, answer=None, said="")


_Judged = tuple[Move, tuple[Effect, ...]]

_MAY_HAVE_EVICTED = frozenset({Answer.EVICTED, Answer.UNSURE})


def _judge(move: Move, seen: Seen, now: float) -> _Judged:
    pod = _the_pod(move, seen)
    if move.status.phase is Phase.EVICTING and (judged := _in_doubt(move, seen, pod, now)):
        return judged
    if now >= move.deadline:
        said = _last_words(move, seen)
        return _finish(move, now, Phase.FAILED, Reason.DEADLINE_EXCEEDED, said)
    if move.awaits_first or move.status.phase is Phase.LANDING:
        return (_following if move.awaits_first else _landing)(move, seen, now)
    return _staying(move, seen, pod, now)


def _in_doubt(move: Move, seen: Seen, pod: SeenPod | None, now: float) -> _Judged | None:
    """Go on with a pod that may have been evicted; None if it was not.

    Nothing else that is seen then ends the move, and would release the seat of who has left.
    """
    if pod is None or pod.is_leaving:
        return _left(move, seen, pod, now)
    if seen.answer in _MAY_HAVE_EVICTED:
        return _answered(move, seen, now)
    is_awaited = move.status.reason is not Reason.BUDGET_BLOCKS and now < move.status.retry_at
    return (move, ()) if is_awaited else None


def _staying(move: Move, seen: Seen, pod: SeenPod | None, now: float) -> _Judged:
    """Go on with a move whose pod has not been evicted."""
    if pod is None or pod.is_leaving:
        return _left(move, seen, pod, now)
    if move.is_entering and pod.node:
        return _entered(move, seen, pod, now)
    if withdrawn := ends.withdrawn(seen, pod):
        return _finish(move, now, *withdrawn)
    return _PHASES[move.status.phase](move, seen, pod, now)


def _ended(move: Move, seen: Seen) -> _Judged:
    """Release what an ended move still holds."""
    if not move.status.seat or seen.seat is None or seen.seat.is_foreign:
        return move, ()
    return move, (Release(seat=PodName(move.name.namespace, move.status.seat)),)


def _left(move: Move, seen: Seen, pod: SeenPod | None, now: float) -> _Judged:
    """Go on with a pod that leaves, or is gone, whoever made it.

    If it goes by itself, a seat that is backed is of use to its replacement all the same.
    """
    seat = seen.seat
    is_of_use = seat is not None and seat.is_usable and ends.unusable(move, seen) is None
    by_itself = move.status.phase is not Phase.EVICTING
    if by_itself and (move.is_entering or not (pod and is_of_use)):
        return _finish(move, now, *ends.gone(move, pod))
    target = seat.node if seat is not None and is_of_use else move.status.target
    return _awaits(_with(move, phase=Phase.LANDING, target=target, evicted_at=now), seen), ()


def _following(move: Move, seen: Seen, now: float) -> _Judged:
    """Wait for the pod that comes with the move that this one follows."""
    is_late = now >= move.created_at + FIRST_WRITTEN_S
    if problem := ends.unfollowable(move, seen, is_late=is_late):
        return _finish(move, now, Phase.ABORTED, Reason.NOTHING_TO_FOLLOW, problem)
    if withdrawn := ends.withdrawn(seen, None):
        return _finish(move, now, *withdrawn)
    if seen.first is None or not seen.first.came.uid:
        message = f"its pod comes with the PodMove {move.spec.after}, which has not ended yet"
        return _with(move, reason=Reason.WAITS_FOR_MOVE, message=message), ()
    came = seen.first.came
    message = f"{came.name} has come with the PodMove {move.spec.after}"
    found = _with(move, pod=came.name, uid=came.uid, found_at=now, source=came.node)
    return _with(found, reason=Reason.WAITS_FOR_TURN, message=message), ()


def _pending(move: Move, seen: Seen, pod: SeenPod, now: float) -> _Judged:
    """Wait for the move's turn."""
    if problem := ends.unmovable(move, seen, pod):
        return _finish(move, now, Phase.FAILED, *problem)
    move = _with(move, uid=pod.uid, controller=pod.controller, source=pod.node)
    if move.is_planned and (why := ends.outdated(move, seen)):
        return _finish(move, now, Phase.FAILED, Reason.PLAN_OUTDATED, why)
    if waits := _waits(move, seen.turn, begins=True):
        return waits
    if move.spec.mode is Mode.EVICT_ONLY:
        return _ready(move, started_at=now), ()
    return _with(move, phase=Phase.RESERVING, seat=move.seat_name, started_at=now), ()


def _reserving(move: Move, seen: Seen, pod: SeenPod, now: float) -> _Judged:
    """Have the seat written, and wait until it is backed, or until who has no node has landed."""
    if problem := ends.refused(seen) or ends.unusable(move, seen):
        return _finish(move, now, Phase.FAILED, *problem)
    seat = seen.seat
    if seat is None and move.spec.paused:
        return _with(move, reason=Reason.PAUSED, message="paused"), ()
    if seat is None:
        message = "the seat is being written"
        move = _with(move, target="", reason=Reason.WAITS_FOR_SEAT, message=message)
        return move, (_hold(move, pod, seen),)
    if not seat.is_usable:
        message = seat.problem or "the seat is not backed yet"
        move = _with(move, target=seat.node, reason=Reason.WAITS_FOR_SEAT, message=message)
        may_go = seat.closed and seat.node and not move.spec.node
        has_volumes = pod.volume_claims and not seat.node  # Nobody tells when these change.
        return move, (_reseat(move, anywhere=False),) if may_go or has_volumes else ()
    if move.is_entering:
        message = f"the pod is awaited on {seat.node}, where its room is held"
        return _with(move, target=seat.node, reason=Reason.WAITS_FOR_POD, message=message), ()
    return _ready(move, target=seat.node), ()


def _entered(move: Move, seen: Seen, pod: SeenPod, now: float) -> _Judged:
    """End the move of a pod that had no node, and has one."""
    said = f"{move.pod.name} has landed on {pod.node}"
    reason = Reason.LANDED if seen.has_claimed else Reason.LANDED_ELSEWHERE
    said += "" if seen.has_claimed else ", without its seat"
    return _finish(_with(move, target=pod.node), now, Phase.SUCCEEDED, reason, said)


def _evicting(move: Move, seen: Seen, pod: SeenPod, now: float) -> _Judged:
    """Evict the pod, when that is allowed; not without a seat that is held and backed."""
    if problem := ends.refused(seen) or ends.unusable(move, seen):
        return _finish(move, now, Phase.FAILED, *problem)
    if move.spec.mode is Mode.RESERVE_FIRST and (seen.seat is None or not seen.seat.is_usable):
        return _with(move, phase=Phase.RESERVING, reason=Reason.WAITS_FOR_SEAT), ()
    if seen.answer is not None:
        return _answered(move, seen, now)
    if waits := _waits(move, seen.turn, begins=False):
        return waits
    if now < move.status.retry_at:
        return move, ()
    evict = Evict(pod=move.pod, uid=pod.uid, grace_period_s=move.spec.grace_period_s)
    return _ready(move), (evict,)


def _landing(move: Move, seen: Seen, now: float) -> _Judged:
    """Wait until the replacement has landed, or none is to come."""
    came = seen.replacement
    if came.uid:
        move = _with(move, replacement=came, target=came.node)
        return _finish(move, now, *ends.arrival(move, came, seen))
    if not seen.is_replaced and _the_pod(move, seen) is None:
        said = "the pod is gone, and its controller wants no other"
        return _finish(move, now, Phase.SUCCEEDED, Reason.NOT_REPLACED, said)
    seat = seen.seat
    if not move.status.seat or (seat is not None and (seat.is_usable or seat.is_claimed)):
        target = seat.node if seat is not None and seat.is_usable else move.status.target
        return _awaits(_with(move, target=target), seen), ()
    return _seatless(move, seen, seat)


def _seatless(move: Move, seen: Seen, seat: SeenSeat | None) -> _Judged:
    """Have another seat for a pod that was evicted; what it has is kept until then."""
    effects: tuple[Effect, ...] = ()
    if seat is None and seen.heir is None:
        message = f"the reservation {move.status.seat} was removed; it is written again for"
        message += " the replacement, once that is there"
    elif seat is None and seen.heir is not None:
        message = f"the reservation {move.status.seat} was removed; it is written again"
        effects = (_hold(move, seen.heir, seen),)
    elif seat is not None and seat.is_foreign:
        message = ends.foreign(move)
    else:
        problem = seat.problem if seat is not None else ""
        message = f"the seat is placed anew, wherever the pod may go: {problem or 'it has no node'}"
        effects = (_reseat(move, anywhere=True),)
    return _with(move, reason=Reason.SEAT_LOST, message=message), effects


def _awaits(move: Move, seen: Seen) -> Move:
    """Return a move whose replacement is awaited."""
    message = f"the replacement is awaited on {move.status.target or 'any node'}"
    if seen.failure:
        message = f"{message}; {move.status.controller.kind} cannot make it: {seen.failure}"
    return _with(move, reason=Reason.WAITS_FOR_REPLACEMENT, message=message)


_PHASES: dict[Phase, Callable[[Move, Seen, SeenPod, float], _Judged]] = {
    Phase.PENDING: _pending,
    Phase.RESERVING: _reserving,
    Phase.EVICTING: _evicting,
}


def _waits(move: Move, turn: Turn, *, begins: bool) -> _Judged | None:
    """Return a move that may not go on now; None if it may."""
    if move.spec.paused:
        return _with(move, reason=Reason.PAUSED, message="paused"), ()
    if turn.may_begin if begins else turn.may_evict:
        return None
    if not turn.why:
        return move, ()  # It is being asked.
    reason = Reason.BUDGET_BLOCKS if turn.is_blocked else Reason.WAITS_FOR_TURN
    reason = Reason.WAITS_FOR_GROUP if turn.waits_for_group else reason
    return _with(move, reason=reason, message=turn.why), ()


def _answered(move: Move, seen: Seen, now: float) -> _Judged:
    """Wait for what follows from an eviction, or send it again, a little later each time."""
    if seen.answer is Answer.EVICTED:  # The watch will show it; until then it is not sent again.
        return _with(move, message="the eviction was accepted", retry_at=now + LAST_PAUSE_S), ()
    pause = min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(move.status.attempts, 10))
    is_blocked = seen.answer is Answer.BLOCKED
    reason = Reason.BUDGET_BLOCKS if is_blocked else Reason.EVICTION_RETRIED
    attempts = move.status.attempts + 1
    move = _with(move, reason=reason, message=seen.said, retry_at=now + pause, attempts=attempts)
    return move, ()


def _hold(move: Move, pod: SeenPod, seen: Seen) -> Hold:
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
    return Hold(
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
    )


def _reseat(move: Move, *, anywhere: bool) -> Reseat:
    return Reseat(seat=PodName(move.name.namespace, move.status.seat), anywhere=anywhere)


def _the_pod(move: Move, seen: Seen) -> SeenPod | None:
    """Return the pod that is to leave, None if it is gone; another one may have its name."""
    wanted = move.status.uid or move.spec.uid
    return None if seen.pod is None or wanted not in {"", seen.pod.uid} else seen.pod


def _last_words(move: Move, seen: Seen) -> str:
    status = move.status
    said = f"{status.phase} when its time was over: {status.message or 'nobody came to it'}"
    if status.phase is Phase.LANDING and status.seat and seen.heir is not None:
        said += f"; {seen.heir.name} waits for a node, and has no seat any more"
    return said


def _finish(move: Move, now: float, phase: Phase, reason: Reason, message: str) -> _Judged:
    return _with(move, phase=phase, reason=reason, message=message, finished_at=now), ()


def _ready(move: Move, **changes: object) -> Move:
    """Return a move whose pod is to be evicted as soon as it is its turn."""
    reason, message = Reason.READY_TO_EVICT, "the pod is to be evicted"
    return _with(move, phase=Phase.EVICTING, reason=reason, message=message, **changes)


def _with(move: Move, **changes: object) -> Move:
    """Return a move with another status."""
    return replace(move, status=replace(move.status, **changes))  # type: ignore[arg-type]


def _again_at(move: Move, now: float) -> float | None:
    if move.is_over:
        return None
    if move.awaits_first:
        return now + FIRST_WRITTEN_S
    retry_at = move.status.retry_at
    if retry_at <= now:
        return move.deadline
    return min(move.deadline, retry_at) if move.deadline > now else retry_at
