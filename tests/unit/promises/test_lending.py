"""Loans: a loan is not a theft, and costs no owner its seat."""

from __future__ import annotations

from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape

BORROWS = {"tolerations": [{"key": "reserver.io/lent", "operator": "Exists"}]}
LEND: dict[str, Any] = {"lend": {"belowPriority": 100}}


def borrower(tape: Tape, name: str = "guest", cpu: str = "3", **spec: Any) -> None:
    tape.land(name, "n", cpu=cpu, **(BORROWS | spec))
    tape.wait(5)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, []),
        ({"priority": 99}, []),
        ({"priority": 100}, [Kind.GIVEN_AWAY]),
        ({"tolerations": []}, [Kind.GIVEN_AWAY]),
        ({"tolerations": [{"operator": "Exists"}]}, [Kind.GIVEN_AWAY]),
    ],
    ids=["borrows", "below", "not below", "does not say so", "says anything"],
)
def test_who_may_borrow(tape: Tape, spec: dict[str, Any], found: list[Kind]) -> None:
    tape.reserve("owner", **LEND)
    borrower(tape, **spec)
    assert tape.kinds() == found


def test_what_lends_nothing_is_held_from_those_who_would_borrow(tape: Tape) -> None:
    tape.reserve("owner")
    borrower(tape)
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_what_one_hold_lends_takes_nothing_of_another(tape: Tape) -> None:
    tape.reserve("owner", cpu="1", **LEND)
    tape.reserve("other", cpu="2")
    borrower(tape, cpu="2")
    assert tape.kinds() == []
    borrower(tape, "second", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_what_a_borrower_leaves_is_free_for_all(tape: Tape) -> None:
    tape.reserve("owner", **LEND)  # 2 of 4 CPUs.
    borrower(tape, cpu="1")
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == []
    tape.land("another", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_borrowers_of_a_low_priority_use_up_first_what_lends_to_no_others(tape: Tape) -> None:
    tape.reserve("owner", cpu="1", **LEND)
    tape.reserve("other", cpu="1", lend={"belowPriority": 10})
    borrower(tape, "low", cpu="1")
    borrower(tape, "high", cpu="1", priority=50)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == []


@pytest.mark.parametrize("how", ["recalled", "gone", "stays"])
def test_an_owner_that_waits_for_its_seat(tape: Tape, how: str) -> None:
    tape.reserve("owner", **LEND)
    borrower(tape)
    tape.pod("owner", cpu="2")
    tape.refuse("owner")
    tape.wait(2)
    if how == "gone":
        tape.delete("guest")
    elif how == "recalled":
        tape.recall("guest")
    tape.wait(60)
    assert tape.kinds() == ([Kind.KEPT_OUT] if how == "stays" else [])


def test_an_owner_that_waits_for_other_reasons(tape: Tape) -> None:
    tape.reserve("owner", **LEND)
    borrower(tape, cpu="1")
    tape.pod("owner", cpu="2")
    tape.refuse("owner")  # There is room: the seat, and one more CPU.
    tape.wait(60)
    assert tape.kinds() == []


def test_an_owner_that_lands_beside_its_borrowed_seat(tape: Tape) -> None:
    tape.reserve("owner", **LEND)
    borrower(tape)
    tape.land("owner", "m", f"{STORE}/hold-owner", cpu="2")
    assert tape.kinds() == [Kind.KEPT_OUT]
