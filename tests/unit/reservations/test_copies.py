"""A reservation that is written at two refs, because it is being moved, is one reservation."""

from dataclasses import replace

import pytest

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ReservationState, ShortNodes
from tests.builders import name, node, pod, reservation

OLD = reservation("web", owners=("a", "b"), slots=2, cpu="2")
NEW = replace(OLD, ref=Ref.of_object("shop", "web"), origin=str(OLD.ref))


@pytest.fixture
def ledger() -> Ledger:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="4"))
    return Ledger(snapshot)


def cpu_held(ledger: Ledger) -> int:
    return ledger.held_on("worker-1").get("cpu", 0) // 1000


def test_places_never_share_a_name() -> None:
    refs = (
        Ref("a", "b", "c"),
        Ref.of_object("a", "c"),
        Ref("a", "b", "c", "n/p"),
        Ref.of_object("a", "b"),
    )
    assert len(set(map(str, refs))) == len(refs)
    assert OLD.identity == NEW.identity


def test_both_hold_once_whichever_goes_first(ledger: Ledger) -> None:
    for first, second in ((OLD, NEW), (NEW, OLD)):
        ledger.put(first)
        ledger.put(second)
        assert cpu_held(ledger) == 4
        assert [r.ref for r in ledger.seats(pod("a"))] == [first.ref]
        assert [r.ref for r in ledger.naming(name("a"))] == [first.ref]
        ledger.drop(first.ref)
        assert cpu_held(ledger) == 4
        assert [r.ref for r in ledger.seats(pod("a"))] == [second.ref]
        ledger.drop(second.ref)
        assert cpu_held(ledger) == 0


def test_the_copy_that_does_not_hold_may_go(ledger: Ledger) -> None:
    ledger.put(OLD)
    ledger.put(NEW)
    ledger.drop(NEW.ref)
    assert cpu_held(ledger) == 4


def test_a_full_node_backs_both(ledger: Ledger) -> None:
    ledger.put(OLD, Written(1, 1))
    ledger.put(reservation("late", cpu="1"), Written(2, 2))
    ledger.put(NEW, Written(3, 3))
    backed = ReservationState(Phase.ACTIVE, is_backed=True)
    short_nodes = ShortNodes.of(ledger._snapshot)
    assert [short_nodes.status(r, ledger) for r in (OLD, NEW)] == [backed, backed]
    ledger.drop(OLD.ref)
    assert ShortNodes.of(ledger._snapshot).status(NEW, ledger) == backed


@pytest.mark.parametrize("claimed", ["before", "between", "after"])
def test_a_claim_counts_in_both_places(ledger: Ledger, claimed: str) -> None:
    def claim() -> None:
        ledger.claim(OLD.identity, pod("a", uid="uid-a"))

    ledger.put(OLD)
    if claimed == "before":
        claim()
    ledger.put(NEW)
    if claimed == "between":
        claim()
    ledger.drop(OLD.ref)
    if claimed == "after":
        claim()
    assert cpu_held(ledger) == 2
    assert ledger.claimants(NEW.ref).keys() == {"uid-a"}
    ledger.claim(NEW.identity, pod("b", uid="uid-b"))
    assert ledger.phase(NEW.ref) is Phase.CLAIMED


def test_a_claim_that_is_taken_back_is_taken_back_in_both_places(ledger: Ledger) -> None:
    ledger.put(OLD)
    ledger.put(NEW)
    ledger.claim(OLD.identity, pod("a", uid="uid-a"), written=False)
    ledger.unclaim("uid-a")
    assert cpu_held(ledger) == 4
    assert ledger.claimants(NEW.ref) == ledger.claimants(OLD.ref) == {}


def test_a_pod_bound_before_the_copy_was_written_has_claimed_it(ledger: Ledger) -> None:
    ledger.put(OLD, Written(1, 1))
    ledger.bound(replace(pod("a", uid="uid-a"), revision=5), exact=True)
    ledger.put(NEW, Written(9, 9))
    assert ledger.claimants(NEW.ref).keys() == {"uid-a"}


def test_a_copy_that_says_something_else_is_a_reservation_of_its_own(ledger: Ledger) -> None:
    ledger.put(OLD)
    other: Reservation = replace(reservation("web", cpu="1"), ref=NEW.ref, origin=NEW.origin)
    ledger.put(other)
    assert cpu_held(ledger) == 5
    ledger.put(NEW)
    assert cpu_held(ledger) == 4
