"""The held room that pods borrow, and the room that stays held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.what_if import without
from tests.builders import BORROWER, NOW, node, pod, ref, reservation, state_of
from tests.unit.scheduling.lending.loans import LENT, W1, borrower, lending, passes

TAKEN = borrower("a", "4", on="worker-1")
FIRM = reservation("firm", owners=("a",), cpu="2")


@pytest.mark.parametrize(
    ("there", "asking", "may"),
    [
        pytest.param([], borrower("b", "8"), True, id="all of it"),
        pytest.param([], borrower("b", "8", priority=99), True, id="to a lower priority"),
        pytest.param([], borrower("b", "8", priority=100), False, id="to no equal priority"),
        pytest.param([], pod("b", cpu="8"), False, id="to nobody without the toleration"),
        pytest.param([], pod("b", cpu="4"), True, id="and beside it there is room"),
        pytest.param([FIRM], borrower("b", "6"), True, id="beside what is not lent"),
        pytest.param([FIRM], borrower("b", "7"), False, id="without what is not lent"),
        pytest.param([TAKEN], borrower("b", "4"), True, id="until it is used up"),
        pytest.param([TAKEN], borrower("b", "5"), False, id="once"),
        pytest.param(
            [TAKEN, pod("c", node="worker-1", cpu="4")], borrower("b", "1"), False, id="if it fits"
        ),
        pytest.param([TAKEN], pod("b", cpu="4"), True, id="before free room is used"),
        pytest.param([TAKEN], pod("b", cpu="5"), False, id="and leaves others what was free"),
        pytest.param(
            [replace(TAKEN, priority=100)], pod("b", cpu="1"), False, id="not to who may not borrow"
        ),
    ],
)
def test_what_is_held_and_unused_is_lent(
    there: list[Pod | Reservation], asking: Pod, *, may: bool
) -> None:
    assert passes(asking, lending(W1, LENT, *there)) == may


def test_nothing_is_lent_where_nobody_may_delete_borrowers() -> None:
    assert not passes(borrower("b", "8"), state_of(W1, LENT))


def test_a_borrower_that_goes_leaves_the_others_what_they_borrow() -> None:
    state = lending(W1, LENT, borrower("a", "2", on="worker-1"), borrower("b", "2", on="worker-1"))
    state.pod_gone(pod("a").name)
    assert passes(pod("c", cpu="4"), state)
    assert not passes(pod("c", cpu="4001m"), state)
    state.pod_gone(pod("b").name)
    assert not state.snapshot.lending.nodes()


def test_one_of_the_pods_of_a_node_is_lent_with_the_rest() -> None:
    state = lending(node("worker-1", cpu="8", pods="2"), LENT, borrower("a", "1", on="worker-1"))
    assert passes(pod("c", cpu="1"), state)
    state.pod_seen(pod("c", node="worker-1", cpu="1"))
    assert not passes(pod("d"), state)


def test_nothing_is_lent_while_a_borrower_is_on_its_way_out() -> None:
    leaving = replace(borrower("a", "1", on="worker-1"), terminating=True)
    state = lending(W1, LENT, leaving)
    assert not passes(borrower("b", "5"), state)
    state.pod_gone(leaving.name)
    assert passes(borrower("b", "5"), state)


@pytest.mark.parametrize("order", [1, -1])
def test_loans_that_ask_for_a_low_priority_are_used_up_first(order: int) -> None:
    low = reservation("low", owners=("a",), lends_below=1, cpu="4")
    high = reservation("high", owners=("b",), lends_below=100, cpu="4")
    taken = borrower("x", "4", on="worker-1")
    state = lending(W1, *(low, high)[::order], taken)
    assert passes(borrower("y", "4", priority=50), state)
    assert not passes(borrower("y", "5", priority=50), state)


def test_a_hold_that_is_lent_is_backed() -> None:
    state = lending(W1, LENT, borrower("a", "4", on="worker-1"), pod("b", node="worker-1", cpu="4"))
    assert ShortNodes.of(state.snapshot).status(LENT, state.ledger).is_backed


def test_to_evict_a_borrower_gives_others_nothing() -> None:
    state = lending(W1, LENT, borrower("a", "4", on="worker-1"), pod("b", node="worker-1", cpu="4"))
    asking, asked = pod("c", priority=1000, cpu="4"), {"worker-1": ["uid-a"]}
    assert judge_preemption(asking, asked, state, NOW).nodes == ()
    assert judge_preemption(asking, {"worker-1": ["uid-b"]}, state, NOW).nodes == ("worker-1",)


def test_without_a_reservation_its_loan_is_gone_too() -> None:
    state = lending(W1, LENT, borrower("a", "4", on="worker-1"))
    with without(ref("lent"), state):
        assert state.snapshot.amounts("worker-1", "cpu")[:3] == (8000, 4000, 0)
    assert state.snapshot.amounts("worker-1", "cpu")[:3] == (8000, 4000, 0)
    state.pod_gone(pod("a").name)
    assert state.snapshot.amounts("worker-1", "cpu")[:3] == (8000, 0, 4000)


def test_a_clock_that_is_set_back_keeps_no_node_from_lending() -> None:
    state = lending(W1, LENT)
    state.ledger.recall("worker-1", NOW + RECALL_S)
    assert state.snapshot.lending.left(0, ["worker-1"], NOW) == {}
    assert "worker-1" in state.snapshot.lending.left(0, ["worker-1"], NOW - 3_600)


@pytest.mark.parametrize(("cpu", "may"), [("6", True), ("7", False)])
def test_an_owner_that_may_borrow_as_well_has_its_slot_once(cpu: str, *, may: bool) -> None:
    others = reservation("s", owners=("another",), cpu="2")
    owner = pod("owner", constraints=BORROWER, cpu=cpu)
    state = lending(W1, LENT, others)
    assert bool(filter_nodes(owner, ["worker-1"], state, NOW).nodes) is may
    assert (judge_bind(owner, "worker-1", state, NOW).refusal is None) is may


def test_an_owner_borrows_what_is_left_whoever_has_its_own_slot() -> None:
    mine = reservation("lent", lends_below=5, cpu="4")
    low = reservation("low", owners=("another",), lends_below=1, cpu="4")
    guest = borrower("guest", "4", priority=3, on="worker-1")
    owner = pod("owner", constraints=BORROWER, cpu="8")
    state = lending(node("worker-1", cpu="12"), mine, low, guest)
    assert filter_nodes(owner, ["worker-1"], state, NOW).nodes
    assert judge_bind(owner, "worker-1", state, NOW).refusal is None


@pytest.mark.parametrize(("cpu", "may"), [("6", True), ("7", False)])
def test_an_owner_borrows_nothing_that_its_borrower_takes_instead(cpu: str, *, may: bool) -> None:
    mine = reservation("lent", lends_below=5, cpu="4")
    others = reservation("others", owners=("another",), lends_below=100, cpu="4")
    guest = borrower("guest", "2", on="worker-1")
    owner = pod("owner", priority=10, constraints=BORROWER, cpu=cpu)
    state = lending(W1, mine, others, guest)
    assert bool(filter_nodes(owner, ["worker-1"], state, NOW).nodes) is may
