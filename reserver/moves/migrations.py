"""Observed pods of a move, and moves of virtual machines.

The replacement of a virtual machine's pod comes by a live migration before the pod goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reserver.cluster.pod import Pod, PodName, is_target, migrates
from reserver.k8s.objects.times import show_moment
from reserver.moves.effects import ReleaseSeat
from reserver.moves.model import NOBODY, Move, Replacement
from reserver.moves.observation import Observation, ObservedPod
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.transitions import Judged, finished, with_status

SEEN_LATE_S = 5.0
"""The seconds before an observed departure in which a replacement may have been created."""


def observed(pod: Pod) -> ObservedPod:
    """Return the fields of a pod that a step is decided on."""
    return ObservedPod(
        uid=pod.uid,
        name=pod.name.name,
        node=pod.node,
        controller=pod.controller,
        requests=pod.requests,
        volume_claims=tuple(use.name for use in pod.volume_claims if not use.is_ephemeral),
        is_leaving=pod.terminating,
        is_finished=pod.finished,
        is_mirror=pod.is_mirror,
    )


def heirs(move: Move, waiting: Sequence[Pod], now: float) -> list[Pod]:
    """Return those of some pods that may have been created after a move's pod had left.

    After an outage the departure was observed late: then they are older than that moment. A pod of
    a StatefulSet has the name of the former one, whatever the clocks showed.
    """
    left_at, since = move.status.evicted_at, move.status.started_at
    if left_at is None:
        return []
    after = show_moment(left_at - SEEN_LATE_S)
    if found := [pod for pod in waiting if pod.created >= after or pod.name == move.pod]:
        return found
    is_late = since is not None and abs(now - left_at) >= SEEN_LATE_S
    return [pod for pod in waiting if is_late and pod.created >= show_moment(since or 0.0)]


def claims_seat(claims: frozenset[str], move: Move) -> bool:
    """Return whether a pod with these claims has claimed the seat of a move."""
    seat = f"{PodName(move.name.namespace, move.status.seat)}#"
    return bool(move.status.seat) and any(claim.startswith(seat) for claim in claims)


def shown(pod: Pod) -> Replacement:
    """Return a pod as a replacement."""
    return Replacement(pod.name.name, pod.uid, pod.node)


def age(pod: Pod) -> tuple[str, str]:
    """Return the sort key of pods, oldest first."""
    return pod.created, pod.uid


BEFORE_IT_GOES = frozenset({MovePhase.RESERVING, MovePhase.EVICTING})
"""The phases in which a live migration may bring the replacement before the pod goes."""


def migrated(move: Move, others: Iterable[Pod]) -> Pod | None:
    """Return the pod that a live migration has brought since a move's turn; None without one.

    A pod that claimed the seat counts regardless of its age; else the latest counts: earlier
    migrations have failed.

    Args:
        move: the move of a virtual machine's pod.
        others: the machine's other unfinished pods that are no other move's replacements.
    """
    began_at = show_moment(move.status.started_at or move.created_at)
    came = [pod for pod in others if pod.node and not pod.terminating and is_target(pod)]
    for pod in came:
        if claims_seat(pod.claims, move):
            return pod
    late = (pod for pod in came if pod.created >= began_at)
    return max(late, key=lambda pod: (pod.created, pod.uid), default=None)


def migrating(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged:
    """Wait for the departure of a pod whose replacement has landed already."""
    came = seen.replacement
    move = with_status(move, replacement=came, target=came.node)
    if pod is None or pod.is_leaving or pod.is_finished:
        return with_status(move, phase=MovePhase.LANDING, evicted_at=now), ()
    message = f"{came.name} is on {came.node}; the pod goes once its live migration has ended"
    if now >= move.deadline:
        return finished(move, now, MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED, message)
    waiting = {"reason": MoveReason.WAITS_FOR_REPLACEMENT, "message": message}
    return with_status(move, phase=MovePhase.EVICTING, **waiting), ()


def failed(move: Move, seen: Observation, pod: ObservedPod) -> Judged | None:
    """Release the seat of a failed live migration for the next one; None if none has failed.

    The pod that claimed the seat is gone, or not shown yet: the claim alone is enough.
    """
    claimed = seen.seat is not None and seen.seat.is_claimed and not seen.seat.is_foreign
    if move.is_entering or not (claimed and migrates(pod.controller)):
        return None
    message = "a live migration has failed; the seat is reserved again"
    waiting = {"reason": MoveReason.WAITS_FOR_SEAT, "message": message}
    release = ReleaseSeat(seat=PodName(move.name.namespace, move.status.seat))
    return with_status(move, replacement=NOBODY, **waiting), (release,)
