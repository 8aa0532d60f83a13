"""The effects of a step of a move; each may be repeated without harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reserver.cluster.pod import PodName
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Write the seat: a Reservation with policy Require, one slot, owned by the PodMove.

    If it is there already and belongs to the PodMove, there is nothing to do.

    Attributes:
        seat: its namespace and name.
        owner: who may claim it: the replacement alone, or the pod itself, if it has no node.
        resources: what it holds: millicores of cpu, base units of all else.
        node: where it is to be; empty where `placement` says it.
        placement: where it may be, beside what the pod demands itself; for a seat without a node.
        avoid: the node that it must not be on: that which the pod leaves, if there is one.
        expires_at: when it ends whatever happens, unix seconds: at the move's deadline.
    """

    seat: PodName
    owner: OwnerRule
    resources: Mapping[str, int]
    node: str
    placement: Placement
    avoid: str
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Evict the pod, with its UID as precondition; the answer is the next step's `Seen.answer`."""

    pod: PodName
    uid: str
    grace_period_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Delete the seat, if it is there and belongs to the PodMove."""

    seat: PodName


Effect = Hold | Evict | Release
