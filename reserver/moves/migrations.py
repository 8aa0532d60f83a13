"""Moves of virtual machines: the replacement comes by a live migration before the pod goes."""

from __future__ import annotations

from collections.abc import Iterable

from reserver.cluster.live_migration import is_target, migrates
from reserver.cluster.pod import Pod, PodName
from reserver.k8s.objects.times import show_moment
from reserver.moves.effects import ReleaseSeat
from reserver.moves.model import NOBODY, Move
from reserver.moves.observation import Observation, ObservedPod
from reserver.moves.observed_pods import claims_seat
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.transitions import Judged, finished, with_status

BEFORE_IT_GOES = frozenset({MovePhase.RESERVING, MovePhase.EVICTING})
"""The phases in which a migration may bring the replacement while the pod is still there."""


def migrated(move: Move, others: Iterable[Pod]) -> Pod | None:
    """Return the pod that a live migration has brought to a node since a move's turn.

    One that claimed the seat counts whenever it was made; else the latest: those before it have
    failed.

    Args:
        move: its pod is, or was, a virtual machine's.
        others: the machine's other pods that have not finished and that no other move counts.
    """
    began_at = show_moment(move.status.started_at or move.created_at)
    came = [pod for pod in others if pod.node and not pod.terminating and is_target(pod)]
    for pod in came:
        if claims_seat(pod.claims, move):
            return pod
    late = (pod for pod in came if pod.created >= began_at)
    return max(late, key=lambda pod: (pod.created, pod.uid), default=None)


def migrating(move: Move, seen: Observation, pod: ObservedPod | None, now: float) -> Judged:
    """Wait for a pod to go whose replacement is there already."""
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
    """Give up the seat of a migration that has failed; the next one gets another. None if none has.

    Who claimed the seat is gone, or not shown yet: then the claim tells all the same.
    """
    claimed = seen.seat is not None and seen.seat.is_claimed and not seen.seat.is_foreign
    if move.is_entering or not (claimed and migrates(pod.controller)):
        return None
    message = "a live migration has failed; the seat is reserved again"
    waiting = {"reason": MoveReason.WAITS_FOR_SEAT, "message": message}
    release = ReleaseSeat(seat=PodName(move.name.namespace, move.status.seat))
    return with_status(move, replacement=NOBODY, **waiting), (release,)
