"""A start recovers claims of deleted pods, and the times of entries."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Reservation, Written
from tests.builders import node, pod, reservation, rule

PAIR = reservation("pair", owners=(), rules=(rule(app="web"),), slots=2, cpu="1")
NAMED = reservation("named", owners=("web-0",), cpu="1")


@pytest.fixture
def ledger() -> Ledger:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="16"))
    return Ledger(snapshot)


def held(ledger: Ledger) -> int:
    return ledger.held_on("worker-1").get("cpu", 0)


def bound(name: str, at: int, *claims: Reservation) -> Pod:
    shown = pod(name, node="worker-1", labels={"app": "web"}, claims=claims, cpu="1")
    return replace(shown, revision=at)


def test_recorded_claims_of_pods_that_are_gone_count(ledger: Ledger) -> None:
    ledger.put(PAIR, Written(0, 10))
    ledger.past.recall(PAIR.ref, PAIR.digest, {"uid-gone": 11})
    assert held(ledger) == 1000
    ledger.past.recall(PAIR.ref, PAIR.digest, {"uid-gone": 11, "uid-too": 12})
    assert ledger.phase(PAIR.ref) is Phase.CLAIMED
    assert ledger.is_over(PAIR.ref)


@pytest.mark.parametrize(
    ("written", "digest"),
    [(Written(12, 12), PAIR.digest), (Written(0, 12), PAIR.digest), (Written(1, 1), "another")],
    ids=["written anew after", "perhaps", "says something else"],
)
def test_recorded_claims_of_what_stood_there_before_do_not(
    ledger: Ledger, written: Written, digest: str
) -> None:
    ledger.put(PAIR, written)
    ledger.past.recall(PAIR.ref, digest, {"uid-gone": 11})
    assert held(ledger) == 2000


def test_a_slot_that_comes_back_is_not_recalled(ledger: Ledger) -> None:
    comes_back = replace(PAIR, reusable=True)
    ledger.put(comes_back, Written(1, 1))
    ledger.past.recall(comes_back.ref, comes_back.digest, {"uid-gone": 11})
    assert held(ledger) == 2000
    assert ledger.recorded(comes_back.ref) == {}


def test_what_is_recorded_is_what_is_recalled(ledger: Ledger) -> None:
    ledger.put(PAIR, Written(1, 1))
    assumed = replace(bound("a", 5, PAIR), node="")
    ledger.claim(PAIR.identity, assumed, written=False)
    assert ledger.recorded(PAIR.ref) == {}, "its binding may still fail"
    ledger.claim(PAIR.identity, bound("a", 7, PAIR))
    ledger.claim(PAIR.identity, bound("a", 9, PAIR))
    assert ledger.recorded(PAIR.ref) == {"uid-a": 7}, "one write for one claim"
    ledger.pod_gone(bound("a", 9, PAIR))
    assert ledger.recorded(PAIR.ref) == {"uid-a": 7}
    after = Ledger(ledger._snapshot)
    after.put(PAIR, Written(0, 1))
    after.past.recall(PAIR.ref, PAIR.digest, ledger.recorded(PAIR.ref))
    assert held(after) == 1000


@pytest.mark.parametrize(
    ("written", "at", "exact", "ends"),
    [
        (Written(0, 10), 11, True, True),
        (Written(10, 10), 11, True, True),
        (Written(0, 12), 11, True, False),
        (Written(12, 12), 11, True, False),
        (Written(0, 10), 11, False, False),
    ],
    ids=["before", "exactly before", "perhaps after", "after", "who knows when it was bound"],
)
def test_a_binding_of_the_past_ends_what_named_the_pod_before(
    ledger: Ledger, written: Written, at: int, *, exact: bool, ends: bool
) -> None:
    ledger.put(NAMED, written)
    ledger.past.recall_binding(bound("web-0", at), exact=exact)
    assert (ledger.phase(NAMED.ref) is Phase.CLAIMED) is ends


def test_a_pod_that_was_deleted_since_claims_what_its_binding_said(ledger: Ledger) -> None:
    ledger.put(PAIR, Written(0, 10))
    ledger.past.recall_binding(bound("web-0", 20, PAIR), exact=False)
    ledger.past.recall_binding(replace(bound("thief", 20, PAIR), labels={}), exact=False)
    assert held(ledger) == 1000


def test_a_binding_is_remembered_for_what_becomes_known_later(ledger: Ledger) -> None:
    ledger.past.recall_binding(bound("web-0", 20), exact=True)
    ledger.put(NAMED, Written(19, 19))
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


def test_the_order_of_holds_is_learnt(ledger: Ledger) -> None:
    first, second = NAMED, reservation("second", owners=("b",), cpu="2")
    for each in (first, second):
        ledger.put(each, Written(0, 30))
    assert ledger.held_after("worker-1", first) == {}
    ledger.past.narrow(first.ref, first.identity, Written(0, 10))
    ledger.past.narrow(second.ref, second.identity, Written(20, 20))
    assert ledger.held_after("worker-1", first) == {"pods": 1, "cpu": 2000}
    assert ledger.held_after("worker-1", second) == {}


@pytest.mark.parametrize(
    ("known", "identity", "learnt"),
    [
        (Written(40, 40), None, Written(10, 10)),
        (Written(0, 5), None, Written(10, 10)),
        (Written(0, 30), "shop/store/named@another", Written(10, 10)),
    ],
    ids=["written again since", "contradicts", "another one"],
)
def test_what_is_known_better_stays(
    ledger: Ledger, known: Written, identity: str | None, learnt: Written
) -> None:
    ledger.put(NAMED, known)
    later = reservation("later", owners=("b",), cpu="2")
    ledger.put(later, Written(35, 35))
    before = ledger.held_after("worker-1", NAMED)
    ledger.past.narrow(NAMED.ref, identity or NAMED.identity, learnt)
    assert ledger.held_after("worker-1", NAMED) == before


def test_an_entry_known_to_be_older_than_a_binding_is_ended_by_it(ledger: Ledger) -> None:
    ledger.put(NAMED, Written(0, 30))
    ledger.past.recall_binding(bound("web-0", 20), exact=True)
    assert ledger.phase(NAMED.ref) is Phase.ACTIVE
    ledger.past.narrow(NAMED.ref, NAMED.identity, Written(10, 10))
    assert ledger.phase(NAMED.ref) is Phase.CLAIMED


def test_a_predecessors_binding_is_not_written_down_as_a_claim_while_it_is_unsure(
    ledger: Ledger,
) -> None:
    """Next to the record is a later version of the store, at which only certain claims are read."""
    ledger.put(NAMED, Written(0, 20))
    ledger.past.recall_binding(bound("web-0", 10), exact=True)
    assert ledger.recorded(NAMED.ref) == {}
    after = Ledger(ledger._snapshot)
    after.put(NAMED, Written(0, 20))
    after.past.recall(NAMED.ref, NAMED.digest, ledger.recorded(NAMED.ref), seen=20)
    assert not after.is_over(NAMED.ref)
    ledger.past.narrow(NAMED.ref, NAMED.identity, Written(9, 9))
    assert ledger.recorded(NAMED.ref) == {"uid-web-0": 10}


def test_what_was_written_down_stays_so_though_its_binding_is_told_of_as_well(
    ledger: Ledger,
) -> None:
    ledger.put(NAMED, Written(0, 20))
    ledger.past.recall(NAMED.ref, NAMED.digest, {"uid-web-0": 10})
    ledger.past.recall_binding(bound("web-0", 10), exact=True)
    assert ledger.recorded(NAMED.ref) == {"uid-web-0": 10}


def test_a_claim_that_was_recorded_of_exactly_this_version_is_recalled(ledger: Ledger) -> None:
    ledger.put(PAIR, Written(5, 5))
    ledger.past.recall(PAIR.ref, PAIR.digest, {"uid-gone": 5})
    assert held(ledger) == 1000
