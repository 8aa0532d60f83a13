"""Borrowers that use a slot of their own reservation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod, PodName
from reserver.reservations.entry import identified
from reserver.reservations.reservation import Written
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, NOW, node, pod, reservation, rule
from tests.cpu import MOST_S, least_cpu_s
from tests.unit.scheduling.lending.loans import (
    LENT,
    borrower,
    lending,
    owner_asks,
    passes,
    recalled_by,
    short,
)

MINE = reservation("mine", owners=("a",), reusable=True, cpu="4", expires=NOW + 60)


def in_own_slot(cpu: str) -> State:
    """Return a node with a borrower in its own slot, and with more room that is lent."""
    guest = replace(borrower("a", cpu, on="worker-1"), claims=frozenset({MINE.identity}))
    state = lending(node("worker-1", cpu="12"), MINE, LENT, guest)
    assert state.ledger.claimed(MINE.ref) == 1
    return state


@pytest.mark.parametrize(("cpu", "borrowed"), [("4", 0), ("5", 1000), ("9", 4000)])
def test_what_a_borrower_has_in_a_slot_of_its_own_is_not_borrowed(cpu: str, borrowed: int) -> None:
    state = in_own_slot(cpu)
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == borrowed
    state.ledger.advance(NOW + 60)  # The slot does not come back any more.
    assert state.snapshot.lending.borrowed("worker-1")["cpu"] == 4000


def test_a_borrower_whose_own_reservation_is_released_borrows_all_that_it_requests() -> None:
    state = in_own_slot("4")
    lending = state.snapshot.lending
    assert not lending.has_borrowers("worker-1")
    assert lending.borrowed("worker-1").get("cpu", 0) == 0
    state.ledger.drop(MINE.ref)
    assert lending.has_borrowers("worker-1")
    assert lending.borrowed("worker-1")["cpu"] == 4000
    assert passes(pod("stranger", cpu="8"), state)


def test_a_borrower_keeps_its_own_slot_when_the_reservation_is_extended() -> None:
    state = in_own_slot("4")
    state.ledger.put(identified(replace(MINE, expires_at=NOW + 600)))
    state.ledger.advance(NOW + 60)
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == 0


def test_a_borrower_has_a_slot_that_it_claimed_by_the_name_of_an_older_version() -> None:
    shared = reservation("mine", rules=[rule(app="x")], reusable=True, cpu="4")
    older = frozenset({f"{shared.record}@{shared.digest}"})
    guest = replace(borrower("a", "4", on="worker-1"), labels={"app": "x"}, claims=older)
    state = lending(node("worker-1", cpu="12"), LENT, guest, shared)
    assert state.ledger.claimed(shared.ref) == 1
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == 0


def test_a_slot_that_does_not_come_back_is_no_own_slot_of_a_borrower() -> None:
    mine = reservation("mine", rules=[rule(app="x")], slots=2, lends_below=100, cpu="4")
    claims = frozenset({mine.identity})
    guest = replace(borrower("a", "4", on="worker-1"), labels={"app": "x"}, claims=claims)
    state = lending(node("worker-1", cpu="12"), mine, guest)
    assert state.ledger.claimed(mine.ref) == 1
    assert state.snapshot.lending.borrowed("worker-1")["cpu"] == 4000


def test_a_borrower_that_was_bound_before_its_reservation_was_shown_has_its_own_slot() -> None:
    guest = replace(borrower("a", "4", on="worker-1"), revision=20)
    state = lending(node("worker-1", cpu="12"), LENT, guest)
    state.ledger.put(MINE, Written(10, 10))
    assert state.ledger.claimed(MINE.ref) == 1
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == 0


def test_who_leaves_a_slot_of_its_own_stops_no_lending() -> None:
    state = in_own_slot("4")
    leaving = state.pods[PodName(NAMESPACE, "a")]
    state.pod_seen(replace(leaving, revision=leaving.revision + 1, terminating=True))
    assert state.snapshot.lending.left(0, ["worker-1"], NOW)


def test_nobody_is_recalled_from_a_slot_of_its_own() -> None:
    state = in_own_slot("4")
    assert not passes(pod("stranger", cpu="5"), state)
    state.pod_seen(pod("other", node="worker-1", cpu="6"))  # Another scheduler bound it.
    assert not owner_asks(state).effects
    state.ledger.advance(NOW + 60)
    assert recalled_by(owner_asks(state)) == {"a"}


def test_a_borrower_that_leaves_its_own_slot_frees_what_it_had_beyond() -> None:
    state = in_own_slot("6")
    state.pod_seen(pod("other", node="worker-1", cpu="4"))
    assert recalled_by(owner_asks(state)) == {"a"}
    state.pod_seen(pod("another", node="worker-1", cpu="1"))
    assert not owner_asks(state).effects


def test_nobody_leaves_its_own_slot_for_a_hold_that_would_not_gain_by_it() -> None:
    state = in_own_slot("6")
    state.ledger.put(reservation("later", owners=("b",), cpu="2"))
    state.pod_seen(pod("other", node="worker-1", cpu="4"))
    assert short(state) == {}


def test_only_so_many_borrowers_have_a_slot_of_their_own_as_there_are() -> None:
    shared = reservation("mine", rules=[rule(app="x")], reusable=True, cpu="4")
    guests = [
        replace(
            borrower(name, "4", on="worker-1"),
            labels={"app": "x"},
            claims=frozenset({shared.identity}),
        )
        for name in "ab"
    ]
    state = lending(node("worker-1", cpu="12"), shared, LENT, *guests)
    assert state.snapshot.lending.borrowed("worker-1")["cpu"] == 4000
    state.pod_gone(guests[0].name)
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == 0


def test_all_reservations_of_a_borrower_are_its_own_however_many() -> None:
    """Else a stranger took the room that others lend, and no recall gave the room back."""
    mine = [reservation(f"r{n}", owners=("a",), reusable=True, cpu="1") for n in range(10)]
    state = lending(node("worker-1", cpu="20"), LENT, *mine, borrower("a", "10", on="worker-1"))
    assert [state.ledger.claimed(each.ref) for each in mine] == [1] * 10
    assert state.snapshot.lending.borrowed("worker-1").get("cpu", 0) == 0
    assert not passes(pod("stranger", cpu="7"), state)


def counted(state: State) -> list[str]:
    """Return the nodes whose borrowers are counted from now on, once for each count."""
    nodes, before = [], state.snapshot.lending.own_slots

    def count(on: str, pods: Mapping[str, Pod]) -> Mapping[str, Mapping[str, int]]:
        nodes.append(on)
        return before(on, pods)

    state.snapshot.lending.own_slots = count
    return nodes


def test_borrowers_are_counted_once_for_a_pod_with_many_reservations_and_once_a_node() -> None:
    """A pod that 1,000 reservations named once held the event loop for 7 s."""
    names = [f"n{number}" for number in range(9)]
    wide = reservation("wide", node="", placed=dict.fromkeys(names, 1), slots=9, cpu="1")
    mine = [reservation(f"r{n}", node="n0", owners=("b",), reusable=True) for n in range(20)]
    state = lending(*(node(name, cpu="8") for name in names), replace(LENT, node="n0"), *mine)
    state.ledger.put(replace(wide, lends_below=100))
    for name in names:
        state.pod_seen(borrower(f"b-{name}", "1", on=name))
    nodes = counted(state)
    state.pod_seen(borrower("b", "1", on="n0"))
    assert 0 < len(nodes) <= 2
    nodes.clear()
    state.pod_gone(PodName(NAMESPACE, "b"))
    assert 0 < len(nodes) <= 2
    nodes.clear()
    state.ledger.put(identified(replace(wide, lends_below=50)))
    assert not nodes  # No borrower is in a slot of it.


def test_many_borrowers_with_many_reservations_of_their_own_cost_little() -> None:
    """Sixty borrowers of a hundred reservations held the event loop for a second."""
    owners = tuple(f"b{number}" for number in range(100))
    mine = [reservation(f"r{n}", owners=owners, reusable=True, slots=100) for n in range(100)]
    state = lending(node("worker-1", cpu="100", pods="100000"), LENT, *mine)
    for number in range(60):
        state.pod_seen(borrower(f"b{number}", "10m", on="worker-1"))
    made = [borrower(f"b{number}", "10m", on="worker-1") for number in range(60, 100)]
    assert least_cpu_s(made.__getitem__, state.pod_seen) < MOST_S
