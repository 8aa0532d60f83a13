"""A ProvisioningRequest of the class ``hold.reserver.io``, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reserver.cluster.pod import PodName

DEFAULT_VALID_S = 600.0
"""How long a booking lasts that does not say so, in seconds: as in the Cluster Autoscaler."""

MOST_VALID_S = 30 * 24 * 3600.0
"""How long a booking lasts at most, in seconds."""

MOST_POD_SETS = 32
"""How many podSets a request may have (its CRD)."""

_STEM = 200
"""How much of a request's name is in those of its Reservations: 253 characters are allowed."""


class Kind(StrEnum):
    """The conditions of a request, in upstream's words."""

    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"


ENDS = (Kind.FAILED, Kind.BOOKING_EXPIRED, Kind.CAPACITY_REVOKED)
"""Those after which nothing is held for a request any more."""


class ConditionReason(StrEnum):
    """Why a condition is what it is: one word for machines, upstream's where it has one."""

    ACCEPTED = "Accepted"
    CAPACITY_IS_FOUND = "CapacityIsFound"
    CAPACITY_IS_NOT_FOUND = "CapacityIsNotFound"
    QUOTA_EXCEEDED = "QuotaExceeded"
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
    RESERVATIONS_REFUSED = "ReservationsRefused"
    INVALID_SPEC = "InvalidSpec"
    INVALID_POD_TEMPLATE = "InvalidPodTemplate"
    TOO_MANY_REQUESTS = "TooManyRequests"
    BOOKING_EXPIRED = "BookingExpired"
    NODE_LOST = "NodeLost"
    RESERVATION_DELETED = "ReservationDeleted"


class PodSet(NamedTuple):
    """Equal pods.

    Attributes:
        template: the name of their PodTemplate.
        pods: how many there are.
    """

    template: str
    pods: int


class ConditionChange(NamedTuple):
    """A condition.

    Attributes:
        kind: which one.
        reason: why, in one word.
        message: why, and what to do about it.
        holds: whether it is true.
    """

    kind: Kind
    reason: str
    message: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningRequest:
    """A request for room.

    Attributes:
        name: namespace and name.
        uid: tells it from an earlier one of the same name.
        pod_sets: what it asks for; empty if that cannot be read.
        valid_s: how long its booking lasts, in seconds.
        retries: it waits for room; else it fails when there is none.
        problem: why it cannot be carried out; empty if it can.
        reason: of the problem.
        said: the conditions that its status has of these.
    """

    name: PodName
    uid: str
    pod_sets: tuple[PodSet, ...] = ()
    valid_s: float = DEFAULT_VALID_S
    retries: bool = True
    problem: str = ""
    reason: ConditionReason = ConditionReason.INVALID_SPEC
    said: Mapping[Kind, ConditionChange] = field(default_factory=dict)

    def holds(self, kind: Kind) -> bool:
        """Return whether a condition is said to be true."""
        return kind in self.said and self.said[kind].holds

    @property
    def has_ended(self) -> bool:
        """Whether nothing is held for it any more, nor will be."""
        return any(map(self.holds, ENDS))

    def reservations(self) -> tuple[str, ...]:
        """Return the names of its Reservations, the same whenever they are asked for."""
        stem = f"{self.name.name[:_STEM].rstrip('-.')}-{self.uid[:8]}"
        return tuple(f"{stem}-{number:02}" for number in range(len(self.pod_sets)))
