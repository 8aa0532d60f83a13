"""Pods as the steps of a move are decided on them."""

from __future__ import annotations

from reserver.cluster.pod import Pod, PodName
from reserver.k8s.objects.times import show_moment
from reserver.moves.model import Move, Replacement
from reserver.moves.observation import ObservedPod

SEEN_LATE_S = 5.0
"""The seconds before an observed departure in which a replacement may have been created."""


def observed(pod: Pod) -> ObservedPod:
    """Return a pod as a step is decided on it."""
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


def came_after(move: Move, pod: Pod) -> bool:
    """Return whether a pod may have been made after that of a move had left."""
    left_at = move.status.evicted_at
    return left_at is not None and pod.created >= show_moment(left_at - SEEN_LATE_S)


def claims_seat(claims: frozenset[str], move: Move) -> bool:
    """Return whether a pod with these claims has claimed the seat of a move."""
    seat = f"{PodName(move.name.namespace, move.status.seat)}#"
    return bool(move.status.seat) and any(claim.startswith(seat) for claim in claims)


def shown(pod: Pod) -> Replacement:
    """Return a pod as the one that came."""
    return Replacement(pod.name.name, pod.uid, pod.node)


def age(pod: Pod) -> tuple[str, str]:
    """Return what puts the oldest pod first."""
    return pod.created, pod.uid
