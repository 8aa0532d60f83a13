"""The moves that may go on now."""

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.budgets import Budget
from reserver.cluster.labels import equals
from reserver.cluster.pod import Controller, PodName
from reserver.moves.advance import advance
from reserver.moves.arbitration import MoveLimits, Ruling, arbitrate, most_of_workload
from reserver.moves.effects import EvictPod
from reserver.moves.groups import Contender
from reserver.moves.model import ALONE, Declared, Move, MoveGroup, MoveSpec
from reserver.moves.observation import Observation, ObservedPod
from reserver.moves.phases import MovePhase, MoveReason
from tests.builders import pod
from tests.unit.moves.build import BACKED, NOW

ANY = MoveLimits(per_node=None)
DRAIN = MoveGroup("drain-1", 3)
TIGHT = Budget(name=PodName("shop", "tight"), selector=equals({"app": "web"}), allowed=1)


def contender(  # noqa: PLR0913 - the fields of a scenario
    name: str,
    phase: MovePhase = MovePhase.PENDING,
    *,
    group: MoveGroup = ALONE,
    node: str = "worker-1",
    age: float = 0,
    reason: MoveReason | None = None,
    app: str = "",
    priority: int = 0,
    of: str = "",
    replicas: int = 0,
    paused: bool = False,
    to: str = "",
    after: str = "",
    seat: str = "",
) -> Contender:
    """Return a move of a pod of the same name."""
    spec = MoveSpec(pod=PodName("shop", name), group=group, paused=paused, node=to, after=after)
    made = Move(name=spec.pod, uid=f"uid-{name}", created_at=NOW - age, spec=spec)
    is_new = phase is MovePhase.PENDING
    status = replace(
        made.status, phase=phase, reason=reason, source="" if is_new else node, target=seat
    )
    leaves = pod(name, node=node, labels={"app": app}, priority=priority)
    return Contender(
        move=replace(made, status=status),
        pod=leaves,
        controller=Controller("ReplicaSet", of or name),
        replicas=replicas,
    )


def ruled(
    *contenders: Contender,
    limits: MoveLimits = ANY,
    budgets: Iterable[Budget] = (),
    declared: Declared = MappingProxyType({}),
) -> dict[str, Ruling]:
    """Return the rulings by the moves' names."""
    rulings = outcome(arbitrate(contenders, budgets, declared, NOW, limits))
    return {name.name: it for name, it in rulings.items()}


def beginning(rulings: dict[str, Ruling]) -> set[str]:
    return {name for name, ruling in rulings.items() if ruling.turn.may_begin}


def evicting(rulings: dict[str, Ruling]) -> set[str]:
    return {name for name, ruling in rulings.items() if ruling.turn.may_evict}


@pytest.mark.parametrize(
    ("replicas", "most"),
    [(0, 1), (1, 1), (3, 1), (4, 2), (10, 2), (11, 1), (20, 2), (99, 9), (1000, 100)],
)
def test_of_a_workload_as_many_move_at_once_as_with_koordinator(replicas: int, most: int) -> None:
    assert most_of_workload(replicas) == most


@pytest.mark.parametrize(("replicas", "most"), [(0, 1), (3, 1), (4, 1), (8, 2), (100, 25)])
def test_a_share_of_a_workload_may_be_set(replicas: int, most: int) -> None:
    assert MoveLimits(workload_percent=25).of_workload(replicas) == most


@pytest.mark.parametrize(
    "limits",
    [MoveLimits(per_node=2), MoveLimits(None, per_namespace=2), MoveLimits(None, globally=2)],
    ids=["node", "namespace", "all"],
)
def test_no_more_evict_at_once_than_a_limit_allows(limits: MoveLimits) -> None:
    moves = [contender(f"w-{n}", MovePhase.EVICTING, age=n) for n in range(4)]
    landing = contender("x", MovePhase.LANDING)
    assert evicting(ruled(*moves, landing, limits=limits)) == {"w-3", "x"}
    assert evicting(ruled(*moves, limits=limits)) == {"w-3", "w-2"}


def test_of_a_workload_one_moves_at_a_time_while_it_has_few() -> None:
    moves = [contender(f"w-{n}", MovePhase.EVICTING, of="web", replicas=3) for n in range(3)]
    assert evicting(ruled(*moves)) == {"w-0"}


def test_the_most_important_pod_goes_first_and_then_the_oldest_move() -> None:
    moves = [
        contender("old", MovePhase.EVICTING, age=9),
        contender("new", MovePhase.EVICTING, age=1),
        contender("important", MovePhase.EVICTING, priority=5),
    ]
    assert evicting(ruled(*moves, limits=MoveLimits(None, per_namespace=1))) == {"important"}
    assert evicting(ruled(*moves[:2], limits=MoveLimits(None, per_namespace=1))) == {"old"}


def test_what_a_budget_blocks_lets_others_go_on() -> None:
    blocked = contender("a", MovePhase.EVICTING, age=5, reason=MoveReason.BUDGET_BLOCKS)
    moves = [blocked, contender("b", MovePhase.EVICTING)]
    assert evicting(ruled(*moves, limits=MoveLimits(per_node=1))) == {"a", "b"}


def test_a_move_whose_seat_waits_for_room_keeps_nobody_from_making_it() -> None:
    waits = contender("b", MovePhase.RESERVING, age=9)
    leaves = contender("a", MovePhase.EVICTING)
    assert "a" in evicting(ruled(waits, leaves, limits=MoveLimits(None, per_namespace=1)))


def test_budgets_are_asked_before_a_seat_is_taken() -> None:
    moves = [contender(f"w-{n}", app="web", age=n) for n in range(3)]
    rulings = ruled(*moves, budgets=[TIGHT])
    assert beginning(rulings) == {"w-2"}
    assert rulings["w-0"].turn.is_blocked
    assert "tight" in rulings["w-0"].turn.why


def test_a_seat_that_is_taken_has_spent_what_its_budget_allows() -> None:
    begun = contender("w-1", MovePhase.RESERVING, app="web")
    assert "w-2" not in beginning(ruled(begun, contender("w-2", app="web", age=5), budgets=[TIGHT]))


def test_few_moves_are_ahead_of_their_evictions() -> None:
    moves = [contender(f"w-{n}", age=n) for n in range(4)]
    assert beginning(ruled(*moves, limits=MoveLimits(None, ahead=2))) == {"w-3", "w-2"}


def test_a_group_begins_when_all_of_it_is_written_and_then_at_once() -> None:
    moves = [contender(f"w-{n}", group=DRAIN) for n in range(3)]
    rulings = ruled(*moves[:2])
    assert beginning(rulings) == set()
    assert rulings["w-0"].turn.waits_for_group
    assert beginning(ruled(*moves, limits=MoveLimits(1, ahead=1))) == {"w-0", "w-1", "w-2"}


@pytest.mark.parametrize(
    ("last", "may"),
    [
        (MovePhase.PENDING, False),
        (MovePhase.RESERVING, False),
        (MovePhase.FAILED, False),
        (MovePhase.EVICTING, True),
        (MovePhase.LANDING, True),
        (MovePhase.SUCCEEDED, True),
        (MovePhase.ABORTED, True),
    ],
)
def test_no_member_of_a_group_evicts_before_all_have_a_seat(last: MovePhase, *, may: bool) -> None:
    seated = [contender(f"w-{n}", MovePhase.EVICTING, group=DRAIN) for n in range(2)]
    rulings = ruled(*seated, contender("last", last, group=DRAIN))
    assert [rulings[name].turn.may_evict for name in ("w-0", "w-1")] == [may, may]


def test_a_group_fails_with_its_first_member_that_did() -> None:
    failed = contender("a", MovePhase.FAILED, group=DRAIN, reason=MoveReason.GROUP_FAILED)
    first = contender("b", MovePhase.FAILED, group=DRAIN, reason=MoveReason.SEAT_IMPOSSIBLE)
    rulings = ruled(failed, first, contender("c", MovePhase.EVICTING, group=DRAIN))
    assert rulings["c"].failed_member == "shop/b"


def test_the_moves_of_a_plan_wait_for_nobody_and_fail_together() -> None:
    plan = MoveGroup("plan-1", 1)
    moves = [contender("a", MovePhase.EVICTING, group=plan), contender("b", group=plan)]
    rulings = ruled(*moves)
    assert (evicting(rulings), "b" in beginning(rulings)) == ({"a"}, True)
    failed = contender("c", MovePhase.FAILED, group=plan)
    assert {it.failed_member for it in ruled(*moves, failed).values()} == {"shop/c"}


ROOM = MoveGroup("room-1", 3)


def room(phase: MovePhase = MovePhase.PENDING, *, target: str = "", name: str = "big") -> Contender:
    """Return the move of a pod without a node, for which others make room."""
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


def test_of_two_moves_of_a_pod_the_older_one_stands() -> None:
    first = contender("w-0", MovePhase.RESERVING, age=5)
    second = contender("w-0")
    named = replace(second.move, name=PodName("shop", "second"))
    rulings = ruled(first, replace(second, move=named))
    assert rulings["second"].rival == "shop/w-0"
    assert rulings["w-0"].rival == ""


def test_a_paused_move_takes_nobodys_turn() -> None:
    paused = contender("a", MovePhase.EVICTING, age=9, paused=True)
    other = contender("b", MovePhase.EVICTING)
    assert "b" in evicting(ruled(paused, other, limits=MoveLimits(None, per_namespace=1)))


def test_a_turn_to_evict_is_given_only_to_a_move_that_counts_from_then_on() -> None:
    for phase in (MovePhase.PENDING, MovePhase.RESERVING):
        ruling = ruled(contender("w", phase))["w"]
        assert (ruling.turn.may_begin, ruling.turn.may_evict) == (True, False)


def test_a_step_from_any_phase_evicts_only_in_turn() -> None:
    """A step passes through several phases at once, with one ruling."""
    for phase in (MovePhase.PENDING, MovePhase.RESERVING, MovePhase.EVICTING):
        asks = contender("w", phase, group=DRAIN)
        rulings = ruled(asks, *(contender(f"o-{n}", group=DRAIN) for n in range(2)))
        there = ObservedPod(uid="u", node="worker-1", controller=asks.controller)
        seen = Observation(pod=there, seat=BACKED, turn=rulings["w"].turn)
        effects = advance(asks.move, seen, NOW).effects
        assert not any(isinstance(effect, EvictPod) for effect in effects)


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
    """The group comes first, whatever the others wait for, so they never wait for each other."""
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


def test_a_move_beyond_those_ahead_is_not_blocked_by_a_budget() -> None:
    begun = contender("a", MovePhase.RESERVING)
    turn = ruled(begun, contender("b"), limits=MoveLimits(ahead=1))["b"].turn
    assert (turn.may_begin, turn.is_blocked) == (False, False)
    assert turn.why == "1 moves of shop must evict first, 1 in all"


def test_a_group_does_not_wait_for_the_seat_of_a_second_step() -> None:
    members = [contender(name, MovePhase.EVICTING, group=DRAIN) for name in ("a", "b")]
    further = contender("c", group=DRAIN, after="a")
    assert evicting(ruled(*members, further)) == {"a", "b"}
