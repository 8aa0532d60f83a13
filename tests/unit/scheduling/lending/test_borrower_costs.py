"""The cost of borrowers, in calls and lines of Python, on thousands of nodes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from reserver.cluster.lending import MOST_BORROWERS, Lending, Loan
from reserver.cluster.pod import Pod
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import PreemptVerdict, judge_preemption
from reserver.scheduling.recall import recalls_for_owners, recalls_for_room
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import FilterVerdict
from tests.builders import BORROWER, NOW, node, parts, pod, reservation
from tests.cpu import MOST_S, least_cpu_s, longest_step_s
from tests.steps import lines
from tests.unit.scheduling.lending.loans import (
    ELSEWHERE,
    LENT,
    OWNER,
    W1,
    borrower,
    lending,
    passes,
)


def test_as_many_may_borrow_of_a_node_as_a_call_can_ask_about() -> None:
    large = node("worker-1", cpu="100", pods="10000")
    there = [borrower(f"b{n}", "10m", on="worker-1") for n in range(MOST_BORROWERS - 1)]
    wide = reservation("lent", lends_below=100, cpu="100")
    state = lending(large, wide, *there)
    assert passes(borrower("x", "1"), state)
    state.pod_seen(borrower("x", "1", on="worker-1"))
    assert not passes(borrower("y", "10m"), state)
    state.pod_gone(pod("x").name)
    assert passes(borrower("y", "10m"), state)


def test_pods_beyond_them_that_name_their_node_borrow_nothing() -> None:
    there = [borrower(f"b{n}", "10m", on="worker-1") for n in range(MOST_BORROWERS + 2)]
    lent = reservation("lent", lends_below=100, cpu="100")
    state = lending(node("worker-1", cpu="100", pods="10000"), lent, *there)
    assert state.snapshot.amounts("worker-1", "cpu").held == 100_000 - 10 * MOST_BORROWERS


@pytest.mark.long
def test_pods_that_name_their_node_cost_an_owner_little() -> None:
    """5,000 such pods, which any tenant may create, once held the event loop for 0.2 s."""
    holds = [reservation(f"r{n}", owners=(f"o{n}",), lends_below=n, cpu="100m") for n in range(500)]
    there = [borrower(f"b{n}", "10m", priority=n, on="worker-1") for n in range(2_000)]
    state = lending(node("worker-1", cpu="60", pods="100000"), *holds, *there)
    for name, cpu in (("o0", "100m"), ("o0", "55"), ("o499", "30")):
        asking = pod(name, cpu=cpu)
        call = lambda now, asking=asking: filter_nodes(asking, ["worker-1"], state, now)  # noqa: E731
        assert least_cpu_s(lambda _: NOW, call) < MOST_S
    assert longest_step_s(lambda: recalls_for_room(state, lambda: NOW)) < MOST_S


def test_an_edit_of_a_reservation_that_lends_takes_few_steps_for_each_node() -> None:
    """An edit of one on 1,000 nodes with ten borrowers each took 60 ms of CPU at once."""

    def edited(nodes: int) -> int:
        names = [f"worker-{n}" for n in range(nodes)]
        there = [borrower(f"b{n}-{on}", "500m", on=on) for on in names for n in range(10)]
        placed = dict.fromkeys(names, 1)
        before, after = (
            reservation("lent", node="", slots=nodes, placed=placed, lends_below=9, cpu=cpu)
            for cpu in ("6", "5")
        )
        state = lending(*(node(name, cpu="8") for name in names), before, *there)
        for priority in range(8):
            state.ledger.conceded(borrower("x", "1", priority=priority))
        return lines(lambda: state.ledger.put(after))

    assert edited(60) - edited(20) < 40 * 900


def test_who_has_to_go_is_asked_a_node_at_a_time() -> None:
    """A cluster of 1,000 nodes once took 0.16 s in one step."""
    names = [f"worker-{n}" for n in range(400)]
    nodes = [node(name, cpu="8") for name in names]
    there = [borrower(f"b{n}-{name}", "1", on=name) for name in names for n in range(20)]
    state = lending(*nodes, *there)
    assert longest_step_s(lambda: recalls_for_room(state, lambda: NOW)) < MOST_S / 5


@pytest.mark.long
def test_the_first_borrower_of_a_priority_costs_little_however_many_nodes_lend() -> None:
    """5,000 nodes once held the event loop for 0.05 s for each new priority."""
    names = [f"worker-{n}" for n in range(4_000)]
    nodes = [node(name, cpu="8") for name in names]
    holds = [reservation(f"r-{on}", node=on, lends_below=100, cpu="4") for on in names]
    there = [borrower(f"b{n}-{on}", "1", on=on) for on in names for n in range(2)]
    state = lending(*nodes, *holds, *there)
    priorities = iter(range(-1, -100, -1))

    def call(_: int) -> FilterVerdict:
        asking = borrower("x", "4", priority=next(priorities))
        return filter_nodes(asking, ["worker-1"], state, NOW)

    assert min(least_cpu_s(abs, call) for _ in range(5)) < MOST_S / 2


def wide(name: str, unlike: str = "") -> Pod:
    """Return a borrower that requests sixty resources that no node offers."""
    made = pod(name, node="worker-1", constraints=BORROWER, cpu="10m")
    invented = {f"example.com/r{n}{unlike}": 1 for n in range(60)}
    return replace(made, requests={**made.requests, **invented})


@pytest.mark.long
@pytest.mark.parametrize("unlike", ["", "-{}"])
def test_borrowers_with_invented_resources_cost_an_owner_little(unlike: str) -> None:
    holds = [reservation(f"r{n}", owners=(f"o{n}",), lends_below=1, cpu="100m") for n in range(500)]
    there = [wide(f"b{n}", unlike.format(n)) for n in range(MOST_BORROWERS)]
    state = lending(node("worker-1", cpu="54", pods="100000"), *holds, *there)
    for name, cpu in (("o0", "100m"), ("o0", "55"), ("o499", "30")):
        asking = pod(name, cpu=cpu)
        call = lambda now, asking=asking: filter_nodes(asking, ["worker-1"], state, now)  # noqa: E731
        assert least_cpu_s(lambda _: NOW, call) < MOST_S
    state.ledger.put(reservation("short", cpu="30"))
    assert longest_step_s(lambda: recalls_for_room(state, lambda: NOW)) < MOST_S


@pytest.mark.long
def test_holds_that_start_soon_are_looked_at_in_steps() -> None:
    names = [f"worker-{n}" for n in range(500)]
    nodes = [node(name, cpu="8") for name in names]
    there = [borrower(f"b-{name}", "8", on=name) for name in names]
    slots = dict.fromkeys(names, 2)
    holds = [
        reservation(f"r{n}", node="", placed=slots, slots=1_000, starts=NOW + 60, cpu="1m")
        for n in range(500)
    ]
    state = lending(*nodes, *there, *holds)
    assert longest_step_s(lambda: recalls_for_room(state, lambda: NOW)) < MOST_S


def test_who_has_a_hundred_owners_leaves_others_their_turn() -> None:
    nodes = [node(f"n{n}", cpu="4") for n in range(3)]
    there = [borrower(f"b{n}", "4", on=f"n{n}") for n in range(3)]
    mine = replace(pod("owner", namespace="data", cpu="4"), is_unschedulable=True)
    greedy = [replace(pod(f"g{n}", cpu="4"), is_unschedulable=True) for n in range(100)]
    there_too = {"n0": 1, "n1": 1}
    one = reservation("all", node="", placed=there_too, slots=2, lends_below=100, cpu="4")
    other = reservation("mine", node="n2", lends_below=100, cpu="4")
    holds = [
        replace(one, owners=tuple(each.name for each in greedy)),
        replace(other, owners=(mine.name,)),
    ]
    found = recalls_for_owners(lending(*nodes, *holds, *there, *greedy, mine), {})
    assert [each.pod.name.namespace for each in filter(None, found)][:2] == ["shop", "data"]


@pytest.mark.long
@pytest.mark.parametrize("cpu", ["5", "9"])
def test_an_owner_whom_no_borrower_of_four_thousand_nodes_can_help_costs_little(cpu: str) -> None:
    """Each call of the owner once judged each node."""
    names = [f"n{n}" for n in range(4_000)]
    held = [reservation(f"r{n}", node="", slots=1_000, lends_below=100, cpu="4") for n in range(4)]
    there = [borrower(f"b-{on}", "4", on=on) for on in names]
    there += [pod(f"s-{on}", node=on, cpu="4") for on in names]
    state = lending(*(node(on, cpu="8") for on in names), *there)
    for number, each in enumerate(held):
        some = dict.fromkeys(names[number * 1_000 : (number + 1) * 1_000], 1)
        state.ledger.put(replace(each, placed=parts(some)))
    asking, victims = pod("owner", cpu=cpu), {on: [f"uid-s-{on}"] for on in names[:500]}
    call = lambda now: filter_nodes(asking, names[:200], state, now)  # noqa: E731
    assert least_cpu_s(lambda _: NOW, call) < MOST_S
    preempt = lambda now: judge_preemption(asking, victims, state, now)  # noqa: E731
    assert least_cpu_s(lambda _: NOW, preempt) < MOST_S


def test_preemption_for_an_owner_of_a_thousand_borrowed_seats_takes_little() -> None:
    """Such a call once took 0.2 s: it judged each seat to the end."""
    names = [f"n{n}" for n in range(1_000)]
    hold = reservation("lent", node="", placed=dict.fromkeys(names, 1), slots=1_000, cpu="4")
    there = [pod(f"s-{on}", node=on, cpu="1") for on in names]
    there += [borrower(f"b-{on}", "7", on=on) for on in names]
    nodes = [node(on, cpu="8") for on in names]
    state = lending(*nodes, replace(hold, lends_below=100), *there)
    asked = {on: [f"uid-b-{on}"] for on in names[:200]}

    def call(asking: Pod) -> PreemptVerdict:
        return judge_preemption(asking, asked, state, NOW)

    assert call(OWNER).nodes == ()
    assert least_cpu_s(lambda _: OWNER, call) < MOST_S
    assert least_cpu_s(lambda _: ELSEWHERE, call) < MOST_S


def test_to_look_for_owners_holds_nobody_up() -> None:
    waiting = [replace(pod(f"p{n}"), is_unschedulable=True) for n in range(5_000)]
    state = lending(W1, LENT, borrower("a", "8", on="worker-1"), *waiting)
    assert longest_step_s(lambda: recalls_for_owners(state, {})) < MOST_S


def owning(count: int) -> State:
    """Return a node of one owner with so many reservations that lend, and a borrower."""
    holds = [
        reservation(f"r{n}", node="", slots=1, placed={"worker-1": 1}, lends_below=9, cpu="100m")
        for n in range(count)
    ]
    borrows = borrower("b", "100m", on="worker-1")
    return lending(node("worker-1", cpu="32"), *holds, borrows)


def test_an_owner_of_many_reservations_that_lend_costs_few_steps_for_each() -> None:
    """With a hundred of them on each of 500 nodes a call once took 7 s of CPU."""

    def asked(count: int) -> int:
        state = owning(count)
        return lines(lambda: filter_nodes(pod("owner", cpu="30"), ["worker-1"], state, NOW))

    assert asked(60) - asked(20) < 40 * 200


def test_holds_that_lend_to_nobody_yet_cost_an_edit_few_steps_for_each() -> None:
    """An edit of one of a hundred on 1,000 nodes once took 0.6 s of CPU at once."""

    def edited(count: int) -> int:
        state = owning(count)
        state.pod_gone(pod("b").name)
        after = reservation("r0", lends_below=8, cpu="200m")
        return lines(lambda: state.ledger.put(after))

    assert edited(60) - edited(20) < 40 * 20


@pytest.mark.parametrize("seed", range(20))
def test_repaid_loans_count_once_however_many_share_a_priority(seed: int) -> None:
    draw = Random(seed)
    loans = [Loan(draw.randint(1, 3), {"cpu": draw.randint(0, 9)}) for _ in range(6)]
    there = borrower("b", f"{draw.randint(1, 30)}m", priority=draw.randint(0, 2))
    books = Lending()
    books.is_on = True
    books.add("worker-1", there)
    for kept in ([], loans[:3], loans):
        books.set("worker-1", {"cpu": 99}, loans)
        repaid = books.borrowed("worker-1", repaid=kept)
        beside = books.left_beside(0, "worker-1", kept)
        books.set("worker-1", {"cpu": 99}, loans[len(kept) :])
        assert repaid.get("cpu", 0) == books.borrowed("worker-1").get("cpu", 0)
        left = books.left(0, ["worker-1"], NOW).get("worker-1", {})
        assert beside.get("cpu", 0) == left.get("cpu", 0)
