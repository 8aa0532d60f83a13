"""A ProvisioningRequest of the class ``hold.reserver.io``, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reserver.cluster.pod import PodName

DEFAULT_VALID_S = 600.0
"""Default validity of a booking, in seconds: as in the Cluster Autoscaler."""

MOST_VALID_S = 30 * 24 * 3600.0
"""Longest validity of a booking, in seconds."""

MOST_POD_SETS = 32
"""Most podSets of a request (its CRD)."""

_STEM = 200
"""Characters of a request's name in its Reservations' names; Kubernetes allows 253."""


class Kind(StrEnum):
    """The conditions of a request, in upstream's words."""

    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"


ENDS = (Kind.FAILED, Kind.BOOKING_EXPIRED, Kind.CAPACITY_REVOKED)
"""The conditions that end a request: nothing is held for it afterwards."""


class ConditionReason(StrEnum):
    """The reason of a condition, as one word for machines; upstream's where it exists."""

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
    """A number of equal pods.

    Attributes:
        template: the name of their PodTemplate.
        pods: their number.
    """

    template: str
    pods: int


class ConditionChange(NamedTuple):
    """A condition.

    Attributes:
        kind: its type.
        reason: its reason, in one word.
        message: the reason in a sentence, and the remedy.
        holds: whether its status is True.
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
        uid: distinguishes it from an earlier request of the same name.
        pod_sets: its podSets; empty if they are invalid.
        valid_s: the validity of its booking, in seconds.
        retries: whether it waits for room; else it fails without room.
        problem: why it cannot be carried out; empty if it can.
        reason: the reason of the problem.
        said: the conditions of its status, by kind.
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
        """Return whether a condition is true."""
        return kind in self.said and self.said[kind].holds

    @property
    def has_ended(self) -> bool:
        """Whether an end condition is true: nothing is held, nor will be."""
        return any(map(self.holds, ENDS))

    def reservations(self) -> tuple[str, ...]:
        """Return the constant names of its Reservations."""
        stem = f"{self.name.name[:_STEM].rstrip('-.')}-{self.uid[:8]}"
        return tuple(f"{stem}-{number:02}" for number in range(len(self.pod_sets)))
