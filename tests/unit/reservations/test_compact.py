"""When a reservation with refill gives the slots of ended claims back."""

from dataclasses import replace
from math import inf

import pytest

from reserver.reservations.ledger import Ledger
from reserver.reservations.placement import compacted
from reserver.reservations.reservation import NOT_YET, Reservation, Written
from tests.builders import parts, pod, ref, reservation, state_of

ONE_TOO_MANY = {"w1": 2, "w2": 1}
WRITTEN, EDITED = Written(7, 7), Written(9, 9)


def refilled(**more: object) -> Reservation:
    said = {"node": "", "placed": ONE_TOO_MANY, "slots": 2, "refill_up_to": 10, "cpu": "2"} | more
    return reservation("r", **said)  # type: ignore[arg-type]


def gives_back(ledger: Ledger, shown: float, key: str = "r") -> bool:
    """Return whether a slot is released once pods are shown up to this resourceVersion."""
    return ledger.compact(ref(key), lambda revision: revision <= shown) == parts({"w1": 2})


def test_a_place_that_is_there_at_the_start_waits_for_the_pods_of_its_time() -> None:
    """The watch may still show pods that another Reserver bound with a claim."""
    ledger = state_of().ledger
    ledger.put(refilled(), WRITTEN)
    assert not gives_back(ledger, 6)
    assert gives_back(ledger, 7)


def test_an_edit_that_leaves_the_place_alone_waits_for_no_pods() -> None:
    ledger = state_of().ledger
    ledger.put(refilled(), NOT_YET)
    ledger.put(refilled(), WRITTEN)
    ledger.put(refilled(cpu="3"), EDITED)
    assert gives_back(ledger, 0)


def test_an_edit_that_comes_with_another_place_waits_for_the_pods_of_its_time() -> None:
    ledger = state_of().ledger
    ledger.put(refilled(placed={"w1": 2}), NOT_YET)
    ledger.put(refilled(placed={"w1": 2}), WRITTEN)
    ledger.put(refilled(cpu="3"), EDITED)
    assert not gives_back(ledger, 8)
    assert gives_back(ledger, 9)


def test_nothing_is_written_if_there_is_nothing_to_give_back() -> None:
    ledger = state_of(refilled(placed={"w1": 2})).ledger
    assert ledger.compact(ref("r"), lambda _: True) is None


def test_a_copy_in_another_store_gives_nothing_back() -> None:
    """The place of a reservation in two stores is written into the first store."""
    first = refilled()
    copy = replace(first, ref=ref("copy"), origin=str(first.ref))
    ledger = state_of(first, copy).ledger
    assert (gives_back(ledger, inf), gives_back(ledger, inf, "copy")) == (True, False)


def test_a_reservation_without_refill_keeps_the_place_of_a_claim_elsewhere() -> None:
    """The owner is on another node: the slot is claimed, and stays counted in its place."""
    made = refilled(refill_up_to=0, slots=3, owners=("a",))
    state = state_of(made)
    state.assume(pod("a", cpu="2"), "w3", (made.identity,))
    state.confirm("uid-a")
    assert state.ledger.claimed(ref("r")) == 1
    assert state.ledger.compact(ref("r"), lambda _: True) is None


@pytest.mark.parametrize(
    ("left", "claimed_on", "expected"),
    [
        pytest.param({"w1": 2, "w2": 0}, [], {"w1": 2}, id="a node without a slot is left out"),
        pytest.param({"w1": 0, "w2": 0}, ["w1"] * 3, {"w1": 2}, id="no node gets more than placed"),
        pytest.param({"w1": 1, "w2": 1}, ["w1"], ONE_TOO_MANY, id="a claim keeps its slot"),
    ],
)
def test_a_place_without_the_slots_of_ended_claims(
    left: dict[str, int], claimed_on: list[str], expected: dict[str, int]
) -> None:
    assert compacted(parts(ONE_TOO_MANY), left, claimed_on) == parts(expected)
