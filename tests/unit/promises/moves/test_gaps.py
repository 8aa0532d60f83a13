"""Moves whose seat came or went while the recorder missed changes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.unit.promises.moves.moved import WITHOUT, Moved


@pytest.mark.parametrize(
    ("node", "claims", "found"),
    [
        ("worker-2", ("shop/seat#uid-seat",), []),
        ("worker-2", (), [WITHOUT]),
        ("worker-1", ("shop/seat#uid-seat",), [WITHOUT]),
    ],
    ids=["claimed elsewhere", "claimed by nobody", "claimed where it was"],
)
def test_a_seat_that_came_and_went_in_a_gap_shows_in_its_claim(
    tape: Moved, node: str, claims: Iterable[str], found: list[str]
) -> None:
    tape.move("Evicting")
    before = tape.revision
    tape.hold(node=node, backed="True")
    tape.evict()
    tape.pod("web-1", maker="web")
    tape.bind("web-1", node, *claims)
    tape._delete("reservations", "shop/seat")
    tape.miss("reservations", before, gone=["shop/seat"])
    assert tape.records.pop()["type"] == "LISTED"  # The seat is gone.
    assert tape.found(WITHOUT) == found


def test_a_seat_that_its_move_names_in_a_gap_is_found_after_it(tape: Moved) -> None:
    tape.move("Reserving", seat="")
    before = tape.revision
    tape.hold(backed="True")
    tape.evict()
    tape.move("Landing")
    tape.miss("podmoves", before)
    assert tape.found(WITHOUT) == []


@pytest.mark.parametrize(("backed", "found"), [("True", []), ("False", [WITHOUT])])
def test_a_seat_that_stands_after_a_gap_is_judged_by_what_it_says_then(
    tape: Moved, backed: str, found: list[str]
) -> None:
    tape.move("Evicting")
    before = tape.revision
    tape.hold()
    tape.evict()
    tape.hold(backed=backed)
    tape.miss("reservations", before)
    assert tape.found(WITHOUT) == found
