"""Moves that make room for a pod without a node."""

from dataclasses import replace

from reserver.moves.groups import Contender
from reserver.moves.model import MoveGroup
from reserver.moves.phases import MovePhase
from tests.unit.moves.arbitration.contenders import TIGHT, beginning, contender, evicting, ruled

ROOM = MoveGroup("room-1", 3)


def room(phase: MovePhase = MovePhase.PENDING, *, target: str = "", name: str = "big") -> Contender:
    """Return the move of a pod without a node, for which other moves make room."""
    made = contender(name, phase, group=ROOM, node="", app="web")
    uid = "" if phase is MovePhase.PENDING else f"uid-{name}"
    status = replace(made.move.status, uid=uid, target=target)
    return replace(made, move=replace(made.move, status=status))


def test_who_makes_room_waits_until_it_is_held_and_for_no_seat_of_another() -> None:
    first = contender("a", MovePhase.EVICTING, group=ROOM)
    second = contender("b", MovePhase.RESERVING, group=ROOM)
    for unheld in (room(), room(MovePhase.RESERVING)):
        ruling = ruled(unheld, first, second)["a"]
        assert (ruling.turn.may_evict, ruling.turn.waits_for_group) == (False, True)
    held = room(MovePhase.RESERVING, target="worker-1")
    assert evicting(ruled(held, first, second)) == {"a"}
    assert beginning(ruled(held, first)) >= {"a"}


def test_who_makes_room_is_needless_once_all_for_whom_it_was_have_ended() -> None:
    makes = contender("a", MovePhase.EVICTING, group=ROOM)
    waits = room(MovePhase.RESERVING, target="worker-1")
    for phase in (MovePhase.ABORTED, MovePhase.SUCCEEDED):
        ended = room(phase, name="other")
        assert ruled(makes, ended)["a"].is_needless
        assert not ruled(makes, ended, waits)["a"].is_needless
    assert not ruled(makes, contender("b", MovePhase.SUCCEEDED, group=ROOM))["a"].is_needless


def test_no_budget_keeps_room_from_being_held() -> None:
    none_left = replace(TIGHT, allowed=0)
    assert "big" in beginning(
        ruled(room(), *(contender(n, group=ROOM) for n in "ab"), budgets=[none_left])
    )
