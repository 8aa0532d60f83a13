"""The effects of a step of a move; each may be repeated without harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reserver.cluster.pod import PodName
from reserver.moves.observation import ObservedCopy, ObservedOriginal
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldSeat:
    """Write the seat: a Reservation with policy Require, one slot, owned by the PodMove.

    If it is there already and belongs to the PodMove, there is nothing to do.

    Attributes:
        seat: its namespace and name.
        like: the pod whose demands it has: the one that leaves or, once that is gone, one that
            comes in its place.
        uid: of that pod.
        owner: who may claim it: the replacement alone, or the pod itself, if it has no node.
        resources: what it holds: millicores of cpu, base units of all else.
        node: where it is to be; empty where `placement` says it.
        placement: where it may be, beside what the pod demands itself; for a seat without a node.
        avoid: the node that it must not be on: that which the pod leaves, if there is one.
        expires_at: when it ends whatever happens, unix seconds (`Move.seat_until`).
        volume_claims: the names of the claims that the replacement will use.
        copy: the name of the copy of the pod, which may claim it before the pod goes; or empty.
    """

    seat: PodName
    like: PodName
    uid: str
    owner: OwnerRule
    resources: Mapping[str, int]
    node: str
    placement: Placement
    avoid: str
    expires_at: float
    volume_claims: tuple[str, ...] = ()
    copy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSeatAnew:
    """Have the seat placed anew, and keep it where it is for as long as there is no other place.

    Attributes:
        seat: its namespace and name.
        anywhere: wherever the pod itself may be, whatever the move says: it has been evicted.
    """

    seat: PodName
    anywhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod:
    """Evict the pod, with its UID as precondition; `Observation.answer` has the answer."""

    pod: PodName
    uid: str
    grace_period_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSeat:
    """Delete the seat, if it is there and belongs to the PodMove."""

    seat: PodName


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCopy:
    """Create a copy of the pod, owned by the PodMove.

    Attributes:
        copy: its namespace and name.
        template: as its ReplicaSet has it.
        withheld: the labels that it does not get yet.
    """

    copy: PodName
    template: Mapping[str, Any]
    withheld: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkLeaving:
    """Give the pod the lowest deletion cost, and note what it was.

    Attributes:
        pod: its namespace and name.
        seen: as it was seen; if it is another one by now, nothing is done.
    """

    pod: PodName
    seen: ObservedOriginal


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Make the copy a pod of its ReplicaSet, in one write: labels and controller.

    Attributes:
        copy: as it was seen: if it is another one by now, nothing is done.
        labels: those that were withheld.
        owner: the ReplicaSet, as an entry of ``ownerReferences``.
    """

    namespace: str
    copy: ObservedCopy
    labels: Mapping[str, str]
    owner: Mapping[str, object]


Effect = HoldSeat | PlaceSeatAnew | EvictPod | ReleaseSeat | StartCopy | MarkLeaving | HandOver
