"""Seats of moves are judged: none goes before its landing, or outlives its move."""

from __future__ import annotations

import pytest

from tests.unit.promises.moves.moved import OUTLIVED, Moved

GIVEN_UP = "seat given up before the landing"


def test_a_seat_that_goes_before_anybody_has_landed_on_it_is_caught(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape._delete("reservations", "shop/seat")
    tape.move("Failed", reason="DeadlineExceeded")
    assert tape.found(GIVEN_UP) == [GIVEN_UP]


@pytest.mark.parametrize(
    ("reason", "found"),
    [("SeatImpossible", [GIVEN_UP]), ("GroupFailed", [GIVEN_UP]), ("LandedElsewhere", [])],
)
def test_a_move_that_ends_as_if_nobody_had_been_evicted_is_caught(
    tape: Moved, reason: str, found: list[str]
) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.status["reason"] = reason
    tape.move("Failed")
    tape._delete("reservations", "shop/seat")
    assert tape.found(GIVEN_UP) == found


def test_who_has_claimed_a_seat_needs_it_no_more(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.pod("web-1", maker="web")
    tape.bind("web-1", "worker-2", "shop/seat#uid-seat")
    tape._delete("reservations", "shop/seat")
    tape.status["reason"] = "Landed"
    tape.move("Succeeded")
    assert tape.found(GIVEN_UP, OUTLIVED) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Aborted"])
def test_a_seat_that_stands_when_its_move_has_ended_is_caught(tape: Moved, phase: str) -> None:
    tape.hold(backed="True")
    tape.move(phase)
    tape.wait(60)
    assert tape.found() == [OUTLIVED]


def test_a_seat_whose_move_was_deleted_is_caught(tape: Moved) -> None:
    tape.hold(backed="True")
    tape.move("Reserving")
    tape._delete("podmoves", "shop/move")
    tape.wait(60)
    assert tape.found() == [OUTLIVED]
    tape._delete("reservations", "shop/seat")
    assert tape.found() == [OUTLIVED]
