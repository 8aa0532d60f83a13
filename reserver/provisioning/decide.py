"""The state machine of a ProvisioningRequest: its conditions and effects."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from reserver.provisioning.model import ConditionChange, ConditionReason, Kind, ProvisioningRequest


class BookingState(Enum):
    """The state of one Reservation of a request."""

    ABSENT = auto()
    UNSETTLED = auto()
    """The Reservation is being written, placed or deleted."""
    HELD = auto()
    """Each slot is held, or claimed by a pod."""
    EXPIRED = auto()
    LOST = auto()
    """The node of some slots is gone, and no other node has room."""


class NoBooking(NamedTuple):
    """The reason for which there is no booking.

    Attributes:
        reason: the reason of the condition.
        message: the message of the condition.
        is_final: a retry cannot succeed.
    """

    reason: ConditionReason
    message: str
    is_final: bool = False


class BookingObservation(NamedTuple):
    """The observation that a step is decided on.

    Attributes:
        holds: the states of its Reservations, in the order of their names.
        until: their expiry, as a text; empty if unknown.
        claimed: the number of claimed slots.
        why: why a Reservation is lost; empty if none is.
        refusal: why they could not be written just now; None without a try.
    """

    holds: tuple[BookingState, ...]
    until: str = ""
    claimed: int = 0
    why: str = ""
    refusal: NoBooking | None = None


class StepResult(NamedTuple):
    """The result of a step: conditions, and effects.

    Attributes:
        said: all conditions, by kind.
        books: write its Reservations, all or none.
        releases: delete its existing Reservations.
    """

    said: Mapping[Kind, ConditionChange]
    books: bool = False
    releases: bool = False


def advance(request: ProvisioningRequest, seen: BookingObservation) -> StepResult:
    """Return the next step of a request, given an observation."""
    has_some = any(hold is not BookingState.ABSENT for hold in seen.holds)
    if request.has_ended:
        return StepResult(request.said, releases=has_some)
    if request.problem and not request.holds(Kind.PROVISIONED):
        return StepResult(
            _with(request, _failed(request.reason, request.problem)), releases=has_some
        )
    if request.holds(Kind.PROVISIONED):  # A newer version may have read what this one cannot.
        over = _over(request, seen)
        return (
            StepResult(_with(request, over), releases=has_some)
            if over
            else StepResult(request.said)
        )
    return _booking(request, seen)


def _booking(request: ProvisioningRequest, seen: BookingObservation) -> StepResult:
    """Return the next step of a request that is not provisioned yet."""
    accepted = ConditionChange(
        Kind.ACCEPTED, ConditionReason.ACCEPTED, "Reserver looks for room", holds=True
    )
    holds = set(seen.holds)
    if holds == {BookingState.HELD}:
        pods = sum(each.pods for each in request.pod_sets)
        message = f"room for {pods} pods is held until {seen.until}"
        found = ConditionChange(
            Kind.PROVISIONED, ConditionReason.CAPACITY_IS_FOUND, message, holds=True
        )
        return StepResult(_with(request, accepted, found))
    if BookingState.UNSETTLED in holds:
        return StepResult(_with(request, accepted))
    if holds != {BookingState.ABSENT}:
        return StepResult(_with(request, accepted), releases=True)
    if seen.refusal is None:
        return StepResult(_with(request, accepted), books=True)
    reason, message, is_final = seen.refusal
    if is_final or (not request.retries and reason is not ConditionReason.POD_TEMPLATE_NOT_FOUND):
        return StepResult(_with(request, accepted, _failed(reason, message)))
    waits = ConditionChange(Kind.PROVISIONED, reason, message, holds=False)
    return StepResult(_with(request, accepted, waits))


def _over(request: ProvisioningRequest, seen: BookingObservation) -> ConditionChange | None:
    """Return the condition that ends a provisioned request; None while held or claimed."""
    if BookingState.LOST in seen.holds:
        message = f"{seen.why}; delete the request, and write another one"
        return ConditionChange(
            Kind.CAPACITY_REVOKED, ConditionReason.NODE_LOST, message, holds=True
        )
    if BookingState.ABSENT in seen.holds:
        message = "a Reservation of it was deleted; delete the request, and write another one"
        return ConditionChange(
            Kind.CAPACITY_REVOKED, ConditionReason.RESERVATION_DELETED, message, holds=True
        )
    if BookingState.EXPIRED in seen.holds:
        pods = sum(each.pods for each in request.pod_sets)
        message = (
            f"{seen.claimed} of {pods} pods had come by {seen.until}, nothing is held for the "
            "others; write another request, with a longer validFor"
        )
        return ConditionChange(
            Kind.BOOKING_EXPIRED, ConditionReason.BOOKING_EXPIRED, message, holds=True
        )
    return None


def _failed(reason: ConditionReason, message: str) -> ConditionChange:
    return ConditionChange(Kind.FAILED, reason, message, holds=True)


def _with(request: ProvisioningRequest, *news: ConditionChange) -> Mapping[Kind, ConditionChange]:
    return {**request.said, **{said.kind: said for said in news}}
