"""Moves whose pod takes a second step, or whose room another pod leaves."""

from dataclasses import replace
from typing import Any

import pytest

from reserver.moves.groups import Contender
from reserver.moves.limits import MoveLimits
from reserver.moves.model import MoveGroup
from reserver.moves.phases import MovePhase, MoveReason
from tests.unit.moves.arbitration.contenders import (
    DRAIN,
    TIGHT,
    beginning,
    contender,
    evicting,
    ruled,
)

SWAP = MoveGroup("swap", 1)


def swap(
    first: MovePhase = MovePhase.LANDING, second: MovePhase = MovePhase.PENDING, seat: str = ""
) -> tuple[Contender, Contender, Contender]:
    """Return the moves of two pods on x and y that change places through z."""
    aside = contender("a-0", first, group=SWAP, node="x", to="z")
    across = contender("a-1", MovePhase.EVICTING, group=SWAP, node="y", to="x")
    home = contender("a-2", second, group=SWAP, node="z", to="y", after="a-0", seat=seat)
    if second is not MovePhase.PENDING:
        status = replace(home.move.status, pod="web-1", uid="uid-web-1")
        home = replace(home, move=replace(home.move, status=status))
    return aside, across, home


def test_nobody_leaves_the_room_of_a_second_step_before_it_is_held() -> None:
    rulings = ruled(*swap())
    assert "shop/a-2 of its group has no seat yet" in rulings["a-1"].turn.why
    assert rulings["a-1"].turn.waits_for_group
    assert not rulings["a-2"].turn.may_begin
    held = swap(MovePhase.SUCCEEDED, MovePhase.RESERVING, seat="y")
    assert "a-1" in evicting(ruled(*held))


def test_a_second_step_waits_for_nobody_that_is_to_leave_its_room() -> None:
    """The group comes first, so that no two moves wait for each other."""
    before = contender("a", MovePhase.EVICTING, group=SWAP, node="y", to="w")
    aside = contender("a-0", MovePhase.EVICTING, group=SWAP, node="x", to="z")
    _, across, home = swap()
    assert evicting(ruled(before, aside, across, home)) == {"a", "a-0"}


@pytest.mark.parametrize(("to", "begins"), [("z", False), ("y", False), ("x", True), ("", True)])
def test_who_comes_later_takes_no_seat_where_a_second_step_is_or_goes(
    to: str, *, begins: bool
) -> None:
    later = contender("a-3", group=SWAP, node="v", to=to)
    assert ("a-3" in beginning(ruled(*swap(), later))) is begins
    held = swap(MovePhase.SUCCEEDED, MovePhase.RESERVING, seat="y")
    assert "a-3" in beginning(ruled(*held, later))
    earlier = contender("a", group=SWAP, node="v", to=to)
    assert "a" in beginning(ruled(*swap(), earlier))


def test_on_a_node_seats_are_taken_in_the_order_of_the_plan() -> None:
    def there(name: str, phase: MovePhase = MovePhase.PENDING, **aside: Any) -> Contender:
        return contender(name, phase, group=SWAP, **{"to": "y", **aside})

    last = there("c")
    assert beginning(ruled(last, there("b"), there("a"))) == {"a"}
    waits = ruled(last, there("b", MovePhase.RESERVING))["c"].turn
    assert waits.why == "shop/b of its group must get its seat first"
    assert waits.waits_for_group
    for before in (
        there("b", MovePhase.RESERVING, seat="y"),
        there("b", MovePhase.FAILED),
        there("b", paused=True),
        there("b", to="x"),
        there("d"),
    ):
        assert "c" in beginning(ruled(last, before))
    alone = [contender(name, to="y") for name in "ab"]
    assert beginning(ruled(*alone)) == {"a", "b"}


def test_one_that_has_nothing_to_follow_takes_its_group_with_it() -> None:
    aside, across, home = swap(MovePhase.ABORTED, MovePhase.ABORTED)
    status = replace(home.move.status, reason=MoveReason.NOTHING_TO_FOLLOW)
    home = replace(home, move=replace(home.move, status=status))
    assert ruled(aside, across, home)["a-1"].failed_member == "shop/a-2"


def test_moves_that_follow_one_are_not_of_one_pod_before_it_has_come() -> None:
    two = (contender("b", after="a", age=2), contender("c", after="a", age=1))
    assert [ruling.rival for ruling in ruled(*two).values()] == ["", ""]


def test_a_second_step_whose_pod_has_yet_to_come_takes_nobodys_turn() -> None:
    waits = contender("b", after="a", app="web", age=9)
    follows = contender("c", app="web")
    assert beginning(ruled(waits, follows, budgets=[TIGHT], limits=MoveLimits(ahead=1))) == {"c"}


def test_a_group_does_not_wait_for_the_seat_of_a_second_step() -> None:
    members = [contender(name, MovePhase.EVICTING, group=DRAIN) for name in ("a", "b")]
    further = contender("c", group=DRAIN, after="a")
    assert evicting(ruled(*members, further)) == {"a", "b"}
