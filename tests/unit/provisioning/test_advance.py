"""The next state of a ProvisioningRequest, as a table of all observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import PodName
from reserver.provisioning.decide import BookingObservation, BookingState, NoBooking, advance
from reserver.provisioning.model import (
    ConditionChange,
    ConditionReason,
    Kind,
    PodSet,
    ProvisioningRequest,
)

REQUEST = ProvisioningRequest(
    name=PodName("shop", "job"), uid="0123456789", pod_sets=(PodSet("a", 3), PodSet("b", 2))
)
ACCEPTED = ConditionChange(Kind.ACCEPTED, ConditionReason.ACCEPTED, "", holds=True)
PROVISIONED = ConditionChange(Kind.PROVISIONED, ConditionReason.CAPACITY_IS_FOUND, "", holds=True)
NO_ROOM = NoBooking(ConditionReason.CAPACITY_IS_NOT_FOUND, "too little cpu")
NO_TEMPLATE = NoBooking(ConditionReason.POD_TEMPLATE_NOT_FOUND, "no PodTemplate a")
BROKEN = NoBooking(ConditionReason.INVALID_POD_TEMPLATE, "cpu: -1", is_final=True)
A, U, H, E, L = (
    BookingState.ABSENT,
    BookingState.UNSETTLED,
    BookingState.HELD,
    BookingState.EXPIRED,
    BookingState.LOST,
)


def having(*said: ConditionChange, **other: object) -> ProvisioningRequest:
    return replace(REQUEST, said={each.kind: each for each in said}, **other)  # type: ignore[arg-type]


def shown(said: Mapping[Kind, ConditionChange]) -> dict[str, tuple[str, bool]]:
    return {kind.value: (each.reason, each.holds) for kind, each in said.items()}


@pytest.mark.parametrize(
    ("holds", "refusal", "retries", "becomes", "does"),
    [
        ((A, A), None, True, {}, "books"),
        ((U, A), None, True, {}, ""),
        ((U, H), None, True, {}, ""),
        ((H, H), None, True, {"Provisioned": ("CapacityIsFound", True)}, ""),
        ((H, A), None, True, {}, "releases"),
        ((H, E), None, True, {}, "releases"),
        ((L, H), None, True, {}, "releases"),
        ((A, A), NO_ROOM, True, {"Provisioned": ("CapacityIsNotFound", False)}, ""),
        ((A, A), NO_ROOM, False, {"Failed": ("CapacityIsNotFound", True)}, ""),
        ((A, A), NO_TEMPLATE, True, {"Provisioned": ("PodTemplateNotFound", False)}, ""),
        ((A, A), NO_TEMPLATE, False, {"Provisioned": ("PodTemplateNotFound", False)}, ""),
        ((A, A), BROKEN, True, {"Failed": ("InvalidPodTemplate", True)}, ""),
    ],
)
def test_a_request_is_accepted_and_then_held_as_a_whole(
    holds: tuple[BookingState, ...],
    refusal: NoBooking | None,
    *,
    retries: bool,
    becomes: dict[str, tuple[str, bool]],
    does: str,
) -> None:
    step = advance(
        replace(REQUEST, retries=retries), BookingObservation(holds, "2030", 0, "why", refusal)
    )
    others = shown(step.said)
    assert others.pop("Accepted") == ("Accepted", True)
    assert others == becomes
    assert (step.books, step.releases) == (does == "books", does == "releases")


@pytest.mark.parametrize(
    ("holds", "kind", "reason"),
    [
        ((H, H), None, ""),
        ((H, U), None, ""),
        ((H, E), "BookingExpired", "BookingExpired"),
        ((H, L), "CapacityRevoked", "NodeLost"),
        ((E, L), "CapacityRevoked", "NodeLost"),
        ((H, A), "CapacityRevoked", "ReservationDeleted"),
        ((A, A), "CapacityRevoked", "ReservationDeleted"),
    ],
)
def test_what_was_held_ends_for_one_reason_and_what_is_left_is_released(
    holds: tuple[BookingState, ...], kind: str | None, reason: str
) -> None:
    before = having(ACCEPTED, PROVISIONED)
    step = advance(before, BookingObservation(holds, "2030", 1, "worker-1 has gone"))
    news = {each: said for each, said in step.said.items() if each not in before.said}
    assert shown(news) == ({kind: (reason, True)} if kind else {})
    assert all(step.said[each] == before.said[each] for each in before.said)
    assert step.releases == (kind is not None and holds != (A, A))
    assert not step.books


def test_messages_say_how_much_until_when_and_why() -> None:
    held = advance(REQUEST, BookingObservation((H, H), "2030-01-01T00:00:00Z"))
    message = "room for 5 pods is held until 2030-01-01T00:00:00Z"
    assert held.said[Kind.PROVISIONED].message == message
    after = having(ACCEPTED, PROVISIONED)
    late = advance(after, BookingObservation((E, H), "2030-01-01T00:00:00Z", 2)).said[
        Kind.BOOKING_EXPIRED
    ]
    assert late.message.startswith("2 of 5 pods had come by 2030-01-01T00:00:00Z")
    lost = advance(after, BookingObservation((L, H), why="worker-1 has gone")).said[
        Kind.CAPACITY_REVOKED
    ]
    assert lost.message.startswith("worker-1 has gone; delete the request")


def test_what_cannot_be_read_fails_and_holds_nothing() -> None:
    broken = replace(REQUEST, pod_sets=(), problem="spec.podSets: is empty")
    step = advance(broken, BookingObservation(()))
    assert shown(step.said) == {"Failed": ("InvalidSpec", True)}
    assert (step.books, step.releases) == (False, False)


def test_what_is_provisioned_does_not_fail_because_it_cannot_be_read() -> None:
    """A rollback to a version without one of its parameters failed it, and released nothing."""
    problem = "spec.parameters.brandNew: hold.reserver.io has no such parameter"
    newer = having(ACCEPTED, PROVISIONED, problem=problem)
    step = advance(newer, BookingObservation((H, H)))
    assert (step.said, step.releases) == (newer.said, False)
    over = advance(newer, BookingObservation((H, E)))
    assert (over.said[Kind.BOOKING_EXPIRED].holds, over.releases) == (True, True)
    begun = advance(having(ACCEPTED, problem=problem), BookingObservation((H, H)))
    assert (begun.said[Kind.FAILED].reason, begun.releases) == ("InvalidSpec", True)


@given(
    ended=st.sampled_from([Kind.FAILED, Kind.BOOKING_EXPIRED, Kind.CAPACITY_REVOKED]),
    holds=st.tuples(st.sampled_from(BookingState), st.sampled_from(BookingState)),
)
def test_what_has_ended_stays_ended_and_is_released(
    ended: Kind, holds: tuple[BookingState, ...]
) -> None:
    over = having(ACCEPTED, PROVISIONED, ConditionChange(ended, "X", "", holds=True))
    step = advance(over, BookingObservation(holds, "2030"))
    assert step.said == over.said
    assert not step.books
    assert step.releases == (set(holds) != {A})


def test_the_names_of_reservations_follow_from_the_request() -> None:
    assert REQUEST.reservations() == ("job-01234567-00", "job-01234567-01")
    long = replace(REQUEST, name=PodName("shop", "x" * 253))
    assert max(map(len, long.reservations())) <= 253
