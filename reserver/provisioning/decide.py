"""The state machine of a ProvisioningRequest: its conditions, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from reserver.provisioning.model import ConditionChange, ConditionReason, Kind, ProvisioningRequest


class BookingState(Enum):
    """The state of one Reservation of a request."""

    ABSENT = auto()
    UNSETTLED = auto()
    """It is being written, placed or taken back."""
    HELD = auto()
    """Each slot of it is held, or a pod has claimed it."""
    EXPIRED = auto()
    LOST = auto()
    """The node of some slots has gone, and no other one has the room."""


class NoBooking(NamedTuple):
    """Why there is no booking.

    Attributes:
        reason: in one word.
        message: what lacks.
        is_final: to try again cannot help.
    """

    reason: ConditionReason
    message: str
    is_final: bool = False


class BookingObservation(NamedTuple):
    """The observation that a step is decided on.

    Attributes:
        holds: its Reservations, in the order of their names.
        until: when they expire, as a text; empty where that is not known.
        claimed: how many of their slots are claimed.
        why: why one is lost; empty if none is.
        refusal: why they were not written a moment ago; None if that was not tried.
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
        books: its Reservations are to be written, all or none.
        releases: those that are there are to be deleted.
    """

    said: Mapping[Kind, ConditionChange]
    books: bool = False
    releases: bool = False


def advance(request: ProvisioningRequest, seen: BookingObservation) -> StepResult:
    """Return what follows from what is seen of a request."""
    has_some = any(hold is not BookingState.ABSENT for hold in seen.holds)
    if request.has_ended:
        return StepResult(request.said, releases=has_some)
    if request.problem:
        return StepResult(
            _with(request, _failed(request.reason, request.problem)), releases=has_some
        )
    if request.holds(Kind.PROVISIONED):
        over = _over(request, seen)
        return (
            StepResult(_with(request, over), releases=has_some)
            if over
            else StepResult(request.said)
        )
    return _booking(request, seen)


def _booking(request: ProvisioningRequest, seen: BookingObservation) -> StepResult:
    """Return what follows of a request for which nothing has been held yet."""
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
    """Return why nothing is held for a request any more; None if it is, or all is claimed."""
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
