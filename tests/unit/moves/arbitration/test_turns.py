"""Moves that may begin or evict now: limits, budgets, priorities and groups."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import PodName
from reserver.moves.advance import advance
from reserver.moves.effects import EvictPod
from reserver.moves.limits import MoveLimits, most_of_workload
from reserver.moves.model import MoveGroup
from reserver.moves.observation import Observation, ObservedPod
from reserver.moves.phases import MovePhase, MoveReason
from tests.unit.moves.arbitration.contenders import (
    DRAIN,
    TIGHT,
    beginning,
    contender,
    evicting,
    ruled,
)
from tests.unit.moves.build import BACKED, NOW


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


def test_a_move_beyond_those_ahead_is_not_blocked_by_a_budget() -> None:
    begun = contender("a", MovePhase.RESERVING)
    turn = ruled(begun, contender("b"), limits=MoveLimits(ahead=1))["b"].turn
    assert (turn.may_begin, turn.is_blocked) == (False, False)
    assert turn.why == "1 moves of shop must evict first, 1 in all"
