"""Claims of slots, in the ledger."""

from dataclasses import replace

import pytest

from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Reservation, Written
from tests.builders import pod, ref, reservation, rule
from tests.unit.reservations.held import held


def claimed(ledger: Ledger, expires: float | None = None) -> Reservation:
    """Return a reservation of one slot of two CPUs, which its owner has claimed."""
    mine = reservation("r", expires=expires, cpu="2")
    ledger.put(mine)
    ledger.claim(mine.identity, pod("owner", uid="uid"))
    return mine


def test_a_claim_takes_one_slot_however_often_it_is_reported(ledger: Ledger) -> None:
    both = reservation("r", owners=("a", "b"), slots=2, cpu="2")
    ledger.put(both)
    for _ in range(3):
        ledger.claim(both.identity, pod("a", uid="uid-a"))
    assert held(ledger) == 2000
    assert ledger.phase(ref("r")) is Phase.ACTIVE
    ledger.claim(both.identity, pod("b", uid="uid-b"))
    assert held(ledger) == 0
    assert ledger.phase(ref("r")) is Phase.CLAIMED


def test_claims_of_pods_that_are_no_owners_do_not_count(ledger: Ledger) -> None:
    mine = reservation("r", owners=("owner",), cpu="2")
    ledger.claim(mine.identity, pod("intruder", uid="uid-before"))
    ledger.put(mine)
    ledger.claim(mine.identity, pod("intruder", uid="uid-after"))
    assert held(ledger) == 2000
    ledger.unclaim("uid-after")
    assert held(ledger) == 2000


def test_a_claim_may_be_known_before_its_reservation(ledger: Ledger) -> None:
    claimed = reservation("r", cpu="2")
    ledger.claim(claimed.identity, pod("owner", uid="uid"))
    ledger.put(claimed)
    assert held(ledger) == 0
    assert ledger.phase(ref("r")) is Phase.CLAIMED


def test_a_claim_that_is_taken_back_gives_the_slot_back(ledger: Ledger) -> None:
    mine = claimed(ledger)
    ledger.unclaim("uid")
    assert held(ledger) == 2000
    assert ledger.seats(pod("owner")) == (mine,)


def test_a_claim_that_is_taken_back_after_the_expiry_gives_nothing_back(ledger: Ledger) -> None:
    claimed(ledger, expires=100.0)
    ledger.advance(100.0)
    ledger.unclaim("uid")
    assert held(ledger) == 0


def test_a_slot_stays_claimed_when_its_pod_is_deleted(ledger: Ledger) -> None:
    claimed(ledger)
    ledger.pod_gone(pod("owner", uid="uid"))
    assert held(ledger) == 0
    assert ledger.phase(ref("r")) is Phase.CLAIMED


def test_a_reservation_written_again_after_its_pod_is_gone_holds_again(ledger: Ledger) -> None:
    mine = claimed(ledger)
    ledger.pod_gone(pod("owner", uid="uid"))
    ledger.drop(mine.ref)
    ledger.put(mine)
    assert held(ledger) == 2000


def test_the_same_reservation_written_again_keeps_its_claims(ledger: Ledger) -> None:
    mine = claimed(ledger)
    ledger.put(reservation("r", cpu="2"))
    assert held(ledger) == 0
    ledger.drop(mine.ref)
    ledger.put(mine)
    assert held(ledger) == 0


@pytest.mark.parametrize(
    "edited",
    [
        reservation("r", cpu="3"),
        reservation("r", cpu="2", slots=2),
        reservation("r", cpu="2", owners=("owner", "other")),
        reservation("r", cpu="2", expires=500.0),
        reservation("r", cpu="2", starts=1.0),
        reservation("r", cpu="2", require=True),
        reservation("r", cpu="2", memory="1"),
        reservation("r", cpu="2", node="worker-2"),
    ],
    ids=lambda r: r.digest,
)
def test_an_edited_reservation_is_another_one_and_inherits_no_claims(
    ledger: Ledger, edited: Reservation
) -> None:
    ledger.advance(10.0)
    claimed(ledger)
    ledger.put(edited)
    assert ledger.phase(edited.ref) is Phase.ACTIVE
    assert held(ledger, edited.node) == edited.resources["cpu"] * edited.slots
    assert len(ledger) == 1


def test_a_reusable_slot_comes_back_also_if_it_was_written_before_its_pod_and_shown_after_it(
    ledger: Ledger,
) -> None:
    ledger.bound(replace(pod("owner", uid="uid"), node="worker-1", revision=9), exact=True)
    ledger.pod_gone(pod("owner", uid="uid"))
    ledger.put(reservation("r", cpu="2", reusable=True), Written(7, 7))
    ledger.put(reservation("once", cpu="1"), Written(7, 7))
    assert held(ledger) == 2000


@pytest.mark.parametrize(
    ("written", "is_over"),
    [(Written(3, 3), True), (Written(0, 7), True), (Written(0, 9), False), (Written(8, 9), False)],
)
def test_a_binding_ends_what_names_its_pod_only_if_that_was_written_before(
    ledger: Ledger,
    written: Written,
    is_over: bool,  # noqa: FBT001 - a scenario
) -> None:
    """A listed entry may be for the next pod of that name: then it holds (ADR 6)."""
    mine = reservation("r", cpu="2")
    ledger.put(mine, written)
    ledger.bound(replace(pod("owner", node="worker-2"), revision=7), exact=True)
    assert ledger.is_over(mine.ref) == is_over
    assert held(ledger) == (0 if is_over else 2000)


@pytest.mark.parametrize(("written", "left"), [(3, 0), (9, 2000)])
def test_a_claim_of_nearly_the_same_words_is_of_what_was_written_before_it(
    ledger: Ledger, written: int, left: int
) -> None:
    """Another Reserver bound the pod with another expiry from the same `ttl`."""
    theirs, mine = (
        replace(reservation("r", rules=(rule(app="web"),), expires=at, cpu="2"), drift=2)
        for at in (500.0, 501.0)
    )
    ledger.put(mine, Written(written, written))
    claims = pod("web-0", node="worker-1", labels={"app": "web"}, claims=(theirs,))
    ledger.claim(theirs.identity, replace(claims, revision=5))
    assert held(ledger) == left
