"""A reservation that recurs in a quota, under a migration, and among thousands."""

from dataclasses import replace

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Written
from tests.builders import node, ref, reservation
from tests.unit.reservations.held import held
from tests.unit.reservations.nightly import BEGIN, DAY, END, HOUR, R, at, claimed, nightly


def test_it_counts_in_its_quota_until_it_is_over(snapshot: Snapshot) -> None:
    quotas = Quotas()
    quotas.limit("shop", [Quota(name="q", hard={"held.cpu": 4000}, max_ttl=8 * HOUR)])
    ledger = Ledger(snapshot, quotas=quotas)
    ledger.advance(BEGIN)
    ledger.put(nightly())
    claimed(ledger, "a")
    ledger.put(reservation("more", expires=BEGIN + HOUR, cpu="1"))
    assert ledger.phase(ref("more")) is Phase.PENDING
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)


def test_while_it_is_migrated_it_keeps_its_turn_in_a_quota_that_is_used_up(
    snapshot: Snapshot,
) -> None:
    quotas = Quotas()
    quotas.limit("shop", [Quota(name="q", hard={"held.cpu": 4000})])
    ledger = Ledger(snapshot, quotas=quotas)
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    ledger.put(reservation("waits", cpu="1"), Written(10, 10))
    there = R._replace(key="moved")
    ledger.put(identified(replace(nightly(), ref=there, origin=str(R))), Written(20, 20))
    for day in (0, 1, 2):
        assert at(ledger, BEGIN + day * DAY) == (Phase.ACTIVE, 0, 4000)
        assert ledger.phase(there) is Phase.ACTIVE
        assert ledger.phase(ref("waits")) is Phase.PENDING
        assert quotas.used("shop")["held.cpu"] == 4000
    ledger.drop(R)
    assert ledger.phase(there) is Phase.ACTIVE


def test_one_that_was_placed_begins_where_it_was_and_is_looked_at(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(identified(replace(nightly(), node="")))
    ledger.place(R, reservation("x", node="", placed={"worker-1": 2}).placed)
    assert at(ledger, BEGIN + 1) == (Phase.ACTIVE, 0, 4000)
    assert at(ledger, END)[2] == 0
    assert not ledger.is_edited(R)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)
    assert ledger.is_edited(R)


def test_while_it_is_migrated_it_holds_once_and_recurs_at_both_refs(ledger: Ledger) -> None:
    ledger.advance(BEGIN)
    ledger.put(nightly(), Written(1, 1))
    claimed(ledger, "a")
    there = R._replace(key="moved")
    ledger.put(identified(replace(nightly(), ref=there, origin=str(R))), Written(20, 20))
    assert (held(ledger), ledger.claimed(there)) == (2000, 1)
    assert at(ledger, END) == (Phase.PENDING, 0, 0)
    assert at(ledger, BEGIN + DAY) == (Phase.ACTIVE, 0, 4000)
    claimed(ledger, "b", 30)
    ledger.drop(R)
    assert (ledger.phase(there), ledger.claimed(there), held(ledger)) == (Phase.ACTIVE, 1, 2000)
    ledger.advance(BEGIN + 2 * DAY)
    assert (ledger.claimed(there), held(ledger)) == (0, 4000)


def test_ten_thousand_that_begin_now_are_not_lost_in_steps(snapshot: Snapshot) -> None:
    snapshot.set_node(node("worker-1", cpu="9000"))
    ledger = Ledger(snapshot)
    ledger.advance(BEGIN)
    many = 2_000
    for index in range(many):
        ledger.put(replace(nightly(cpu="1"), ref=ref(f"r-{index}")))
    assert held(ledger) == many * 2000
    ledger.advance(END, most=None)
    assert held(ledger) == 0
    ledger.advance(BEGIN + DAY)
    assert 0 < held(ledger) < many * 2000
    ledger.advance(BEGIN + DAY, most=None)
    assert held(ledger) == many * 2000
