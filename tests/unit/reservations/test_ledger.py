"""Reservations that a ledger holds, and the order among them."""

import pytest

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Written
from tests.builders import name, node, pod, ref, reservation
from tests.unit.reservations.held import held


@pytest.mark.parametrize(
    ("writes", "after"),
    [
        ([("a", (1, 1), "2"), ("b", (2, 2), "3")], 3),
        ([("b", (2, 2), "3"), ("a", (1, 1), "2")], 3),
        ([("a", (2, 2), "2"), ("b", (1, 1), "3")], 0),
        ([("a", (0, 9), "2"), ("b", (0, 9), "3")], 0),
        ([("a", (0, 9), "2"), ("b", (9, 12), "3")], 0),
        ([("a", (0, 9), "2"), ("b", (10, 12), "3")], 3),
        ([("a", (1, 1), "2"), ("b", (2, 2), "3"), ("a", (3, 3), "1")], 3),
        ([("a", (1, 1), "2"), ("b", (2, 2), "3"), ("a", (3, 3), "4")], 0),
    ],
    ids=[
        "after",
        "after, though known first",
        "before",
        "nobody knows",
        "perhaps at once",
        "certainly after",
        "one that shrinks keeps its place",
        "one that grows does not",
    ],
)
def test_what_was_certainly_written_after_another_one_is_told_apart(
    ledger: Ledger, writes: list[tuple[str, tuple[int, int], str]], after: int
) -> None:
    for key, written, cpu in writes:
        ledger.put(reservation(key, cpu=cpu), Written(*written))
    first = ledger.get(ref("a"))
    assert first is not None
    assert ledger.held_after("worker-1", first).get("cpu", 0) == after * 1000


def test_one_that_starts_later_stands_behind_those_that_hold_by_then(ledger: Ledger) -> None:
    early, late = reservation("early", starts=100.0, cpu="1"), reservation("late", cpu="2")
    ledger.put(early, Written(1, 1))
    ledger.put(late, Written(2, 2))
    ledger.advance(100.0)
    assert ledger.held_after("worker-1", late)["cpu"] == 1000
    ledger.put(reservation("last", cpu="4"), Written(3, 3))
    assert ledger.held_after("worker-1", early)["cpu"] == 4000


def test_the_node_of_one_that_holds_may_be_missing(ledger: Ledger) -> None:
    ledger.put(reservation("r", node="ghost", cpu="1"))
    assert ledger.phase(ref("r")) is Phase.FAILED
    assert ledger.held_on("ghost")["cpu"] == 1000
    ledger.put(reservation("over", node="ghost", expires=0.0, cpu="1"))
    assert ledger.phase(ref("over")) is Phase.EXPIRED


def test_a_reservation_holds_all_its_slots(ledger: Ledger) -> None:
    ledger.put(reservation("r", slots=3, cpu="2"))
    assert held(ledger) == 6000
    assert ledger.held_on("worker-1")["pods"] == 3


def test_reservations_on_one_node_add_up(ledger: Ledger) -> None:
    ledger.put(reservation("a", cpu="2"))
    ledger.put(reservation("b", cpu="3"))
    assert held(ledger) == 5000
    assert [r.ref.key for r in ledger.holding_on("worker-1")] == ["a", "b"]


def test_a_reservation_that_was_over_when_it_was_written_holds_nothing(ledger: Ledger) -> None:
    ledger.advance(300.0)
    ledger.put(reservation("r", expires=200.0, cpu="2"))
    assert held(ledger) == 0
    assert ledger.seats(pod("owner")) == ()


def test_a_reservation_that_moves_holds_nothing_where_it_was(ledger: Ledger) -> None:
    ledger.put(reservation("r", cpu="2"))
    ledger.put(reservation("r", cpu="2", node="worker-2"))
    assert (held(ledger, "worker-1"), held(ledger, "worker-2")) == (0, 2000)


def test_the_times_of_what_was_edited_away_do_nothing(ledger: Ledger) -> None:
    ledger.put(reservation("r", expires=100.0, cpu="2"))
    ledger.put(reservation("r", expires=300.0, cpu="2"))
    ledger.advance(200.0)
    assert held(ledger) == 2000
    ledger.advance(300.0)
    assert held(ledger) == 0


def test_a_dropped_reservation_leaves_no_trace(ledger: Ledger) -> None:
    mine = reservation("r", expires=100.0, cpu="2")
    ledger.put(mine)
    ledger.drop(mine.ref)
    ledger.drop(mine.ref)
    ledger.advance(200.0)
    assert held(ledger) == 0
    assert len(ledger) == 0
    assert ledger.get(mine.ref) is None
    assert ledger.phase(mine.ref) is None
    assert ledger.seats(pod("owner")) == ledger.naming(name("owner")) == ()
    assert list(ledger.holding_on("worker-1")) == []


def test_a_pods_reservations_are_found_oldest_first_while_they_are_not_over(
    ledger: Ledger,
) -> None:
    ledger.advance(100.0)
    claimed = reservation("claimed", cpu="1")
    for written in (
        reservation("pending", starts=150.0, cpu="1"),
        claimed,
        reservation("expired", expires=50.0, cpu="1"),
        reservation("b", cpu="1"),
        reservation("a", cpu="1"),
        reservation("others", owners=("other",), cpu="1"),
    ):
        ledger.put(written)
    ledger.claim(claimed.identity, pod("owner", uid="uid"))
    assert [r.ref.key for r in ledger.naming(name("owner"))] == ["pending", "b", "a"]
    assert [r.ref.key for r in ledger.seats(pod("owner"))] == ["b", "a"]


def test_the_phases_of_all_reservations_can_be_listed(ledger: Ledger) -> None:
    ledger.advance(100.0)
    ledger.put(reservation("a", starts=200.0, cpu="1"))
    ledger.put(reservation("b", cpu="1"))
    ledger.put(reservation("c", expires=100.0, cpu="1"))
    listed = [(r.ref.key, phase.value) for r, phase in ledger]
    assert listed == [("a", "Pending"), ("b", "Active"), ("c", "Expired")]


def test_what_no_node_offers_is_held_as_soon_as_one_does(
    ledger: Ledger, snapshot: Snapshot
) -> None:
    ledger.put(reservation("r", node="worker-9", gpu="2"))
    snapshot.set_node(node("worker-9", gpu="4"))
    assert snapshot.held[snapshot.row("worker-9"), snapshot.columns["nvidia.com/gpu"]] == 2
