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

    No effect if the seat exists and belongs to the PodMove.

    Attributes:
        seat: namespace and name of the seat.
        like: the pod whose constraints the seat gets: the leaving pod or, once that is gone, a
            replacement.
        uid: the UID of `like`.
        owner: the owner: the replacement alone, or the pod itself if it has no node.
        resources: the held resources, in millicores of cpu and base units of all others.
        node: the seat's node; empty if `placement` decides.
        placement: constraints on the seat's node besides the pod's own, if `node` is empty.
        avoid: the node that the pod leaves, which the seat must not use; may be empty.
        expires_at: the expiry of the seat, unix seconds (`Move.seat_until`).
        volume_claims: the names of the PersistentVolumeClaims of the replacement.
        copy: the name of the pod's copy, which may claim the seat first; empty without one.
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
    """Place the seat anew; it keeps its place until there is another one.

    Attributes:
        seat: namespace and name of the seat.
        anywhere: ignore the move's target: the pod has been evicted.
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
    """Delete the seat, if it exists and belongs to the PodMove."""

    seat: PodName


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCopy:
    """Create a copy of the pod, owned by the PodMove.

    Attributes:
        copy: namespace and name of the copy.
        template: the pod template of the ReplicaSet.
        withheld: the labels that the copy gets only when it is handed over.
    """

    copy: PodName
    template: Mapping[str, Any]
    withheld: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkLeaving:
    """Give the pod the lowest deletion cost, and record its former cost.

    Attributes:
        pod: namespace and name of the pod.
        seen: the observed pod; the write fails if the pod has changed since.
    """

    pod: PodName
    seen: ObservedOriginal


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Make the copy a pod of its ReplicaSet, with one write of labels and controller.

    Attributes:
        copy: the observed copy; the write fails if the copy has changed since.
        labels: the withheld labels.
        owner: the ReplicaSet, as an entry of ``ownerReferences``.
    """

    namespace: str
    copy: ObservedCopy
    labels: Mapping[str, str]
    owner: Mapping[str, object]


Effect = HoldSeat | PlaceSeatAnew | EvictPod | ReleaseSeat | StartCopy | MarkLeaving | HandOver
