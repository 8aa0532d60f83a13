"""A placed reservation holds on the node in its status, from the write of the status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape

PLACE = f"{STORE}/seats"


def write(tape: Tape, *owners: str, **more: Any) -> dict[str, Any]:
    """Write an entry without a node, as a manager does, and return it."""
    text = tape.entry(*owners, **{"node": "", "slots": len(owners), **more})
    tape.put("seats", text)
    return dict(json.loads(text))


def place(tape: Tape, entry: dict[str, Any], **slots: int) -> None:
    """Write the place of the entry, as Reserver does, and let time pass."""
    parts = [{"node": node, "slots": number} for node, number in slots.items()]
    tape.edit({"seats": json.dumps(entry | {"placements": parts})})
    tape.wait(5)


def test_a_stranger_in_what_is_placed_is_a_violation(tape: Tape) -> None:
    place(tape, write(tape, "owner", cpu="3"), n=1)
    tape.land("stranger", "n", cpu="2")
    (violation,) = tape.report().violations
    assert (violation.kind, violation.node) == (Kind.GIVEN_AWAY, "n")
    assert violation.entry == PLACE


def test_each_node_holds_its_own_slots(tape: Tape) -> None:
    place(tape, write(tape, "a", "b", "c"), m=1, n=2)
    tape.land("at-m", "m", cpu="2")
    assert tape.kinds() == []
    tape.land("at-n", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_claim_frees_a_slot_where_the_owner_landed(tape: Tape) -> None:
    place(tape, write(tape, "a", "b", "c"), m=1, n=2)
    tape.land("a", "n", PLACE, cpu="2")
    tape.wait(5)
    tape.land("at-m", "m", cpu="3")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_what_waits_for_a_place_holds_nothing(tape: Tape) -> None:
    write(tape, "owner", cpu="3")
    tape.wait(5)
    tape.land("stranger", "n", cpu="4")
    assert tape.kinds() == []


def test_one_that_is_moved_holds_where_it_is(tape: Tape) -> None:
    entry = write(tape, "owner", cpu="3")
    place(tape, entry, m=1)
    place(tape, entry, n=1)
    tape.land("at-m", "m", cpu="4")
    assert tape.kinds() == []
    tape.land("at-n", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_node_that_was_away_may_have_lost_it(tape: Tape) -> None:
    place(tape, write(tape, "owner", cpu="3"), n=1)
    tape._delete("nodes", "/n")
    tape.node("n")
    tape.wait(5)
    tape.land("stranger", "n", cpu="4")
    assert tape.kinds() == []


@pytest.mark.parametrize("require", [True, False])
def test_an_owner_beside_its_seats_is_a_violation(tape: Tape, *, require: bool) -> None:
    tape.node("far")
    policy = {"policy": "Require"} if require else {}
    place(tape, write(tape, "owner", "other", **policy), m=1, n=1)
    tape.land("owner", "far", PLACE)
    (violation,) = tape.report().warnings if not require else tape.report().violations
    assert violation.kind is Kind.OFF_SEAT


def test_either_seat_will_do(tape: Tape) -> None:
    place(tape, write(tape, "owner", "other", policy="Require"), m=1, n=1)
    tape.land("owner", "n", PLACE)
    assert tape.kinds() == []


def test_a_placed_entry_that_vanishes_is_lost(tape: Tape) -> None:
    place(tape, write(tape, "owner"), n=1)
    tape.edit({"seats": None})
    assert tape.kinds() == [Kind.RESERVATION_LOST]


def test_of_an_object_the_status_says_where(tape: Tape) -> None:
    spec = json.loads(tape.entry("owner", node="", cpu="3"))
    body = {"metadata": {"namespace": "shop", "name": "seat"}, "spec": spec}
    tape._write("reservations", "shop/seat", body)
    tape.wait(5)
    tape.land("early", "m", cpu="4")
    body["status"] = {"placements": [{"node": "n", "slots": 1}]}
    tape._write("reservations", "shop/seat", body)
    tape.wait(5)
    assert tape.kinds() == []
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]
