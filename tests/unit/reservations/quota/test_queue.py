"""The order in which reservations that wait for a quota are admitted."""

from dataclasses import replace

import pytest

from reserver.reservations.quotas import AT_ONCE
from reserver.reservations.reservation import Written
from tests.builders import NAMESPACE, pod, ref, reservation
from tests.unit.reservations.quota.limited import drain, holding, ledger_of, quota, write


def test_who_waits_comes_in_when_there_is_room_and_stands_behind_those_that_hold_by_then() -> None:
    ledger = ledger_of(quota(cpu="8"))
    ledger.put(reservation("a", cpu="8"), Written(1, 1))
    ledger.put(reservation("b", cpu="4"), Written(2, 2))
    elsewhere = replace(reservation("c", cpu="2"), ref=ref("c")._replace(namespace="other"))
    ledger.put(elsewhere, Written(3, 3))
    ledger.drop(ref("a"))
    assert holding(ledger) == {"b", "c"}
    assert ledger.held_after("worker-1", elsewhere) == {"cpu": 4000, "pods": 1}


@pytest.mark.parametrize("how", ["claimed", "expired", "released", "shrunk"])
def test_room_appears_when_one_is(how: str) -> None:
    ledger = ledger_of(quota(cpu="8"))
    first = reservation("a", cpu="8", expires=100.0)
    ledger.put(first)
    write(ledger, ("b", 3))
    assert holding(ledger) == {"a"}
    match how:
        case "claimed":
            ledger.claim(first.identity, pod("owner", node="worker-1"))
        case "expired":
            ledger.advance(100.0)
        case "released":
            ledger.drop(first.ref)
        case "shrunk":
            ledger.put(reservation("a", cpu="5", expires=100.0))
    assert "b" in holding(ledger)
    assert not ledger.excess(ref("b"))


def test_one_that_grows_takes_a_new_turn_and_one_that_does_not_keeps_its_own() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3), ("c", 6), ("d", 2))
    assert holding(ledger) == {"a", "b"}
    ledger.put(reservation("a", cpu="3", expires=100.0))  # The spec differs, but requests no more.
    assert holding(ledger) == {"a", "b"}
    ledger.put(reservation("a", cpu="4"))
    assert holding(ledger) == {"b"}  # c waited before d, and 3 + 6 are too many.
    ledger.drop(ref("c"))
    assert holding(ledger) == {"b", "d"}
    ledger.drop(ref("b"))
    assert holding(ledger) == {"a", "d"}


def test_one_that_grows_stays_if_there_is_room_and_nobody_waits() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3))
    ledger.put(reservation("a", cpu="5"))
    assert holding(ledger) == {"a", "b"}


def test_a_namespace_whose_last_reservation_goes_is_forgotten() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 8), ("b", 8))
    ledger.drop(ref("a"))
    ledger.drop(ref("b"))
    assert not ledger.quotas._admissions
    write(ledger, ("b", 8))
    assert holding(ledger) == {"b"}


def test_after_a_start_those_come_first_that_were_in_before_however_they_are_listed() -> None:
    ledger = ledger_of(quota(cpu="8"), is_open=False)
    for key, created in (("a", 30.0), ("b", 20.0), ("c", 10.0), ("d", 40.0)):
        ledger.put(replace(reservation(key, cpu="4"), created_at=created))
    for key in "ad":
        known = ledger.get(ref(key))
        assert known
        ledger.quotas.recall(known)
    assert holding(ledger) == set()
    for _ in ledger.open():
        pass
    assert holding(ledger) == {"a", "d"}
    ledger.drop(ref("a"))
    assert holding(ledger) == {"c", "d"}


def test_one_change_lets_few_in_at_once_and_tells_that_there_are_more() -> None:
    changed: list[str] = []
    ledger = ledger_of(quota(cpu="100"))
    ledger.quotas.changed = changed.append
    write(ledger, ("first", 100), *((f"r{number}", 1) for number in range(100)))
    changed.clear()
    ledger.drop(ref("first"))
    assert len(holding(ledger)) == AT_ONCE
    assert NAMESPACE in changed
    drain(ledger)
    assert len(holding(ledger)) == 100
