"""Reservations that a quota admits."""

from dataclasses import replace

import pytest

from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import ShortNodes
from tests.builders import NAMESPACE, parts, pod, ref, reservation
from tests.unit.reservations.quota.limited import (
    WEEK,
    any_held,
    holding,
    ledger_of,
    limit,
    quota,
    write,
)


@pytest.mark.parametrize(
    ("sizes", "in_"),
    [
        ([("a", 4), ("b", 4)], "ab"),
        ([("a", 4), ("b", 5), ("c", 1)], "a"),
        ([("a", 9), ("b", 4), ("c", 4)], "bc"),
        ([("a", 8), ("b", 1)], "a"),
        ([("a", 1)] * 3, "a"),
    ],
    ids=[
        "all that fit",
        "who waits keeps those behind it waiting",
        "who can never come in keeps nobody out",
        "to the last millicore",
        "what is written again is the same",
    ],
)
def test_the_first_that_meet_the_quota_together_hold(
    sizes: list[tuple[str, int]], in_: str
) -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, *sizes)
    assert holding(ledger) == set(in_)


def test_what_exceeds_holds_nothing_and_says_so_as_resource_quota_does() -> None:
    ledger = ledger_of(quota(name="team-quota", cpu="64"))
    write(ledger, ("a", 60), ("b", 8), ("c", 1))
    assert ledger.held_on("worker-1")["cpu"] == 60_000
    assert ledger.phase(ref("b")) is Phase.PENDING
    exceeded = (
        "exceeded quota: team-quota, requested: held.cpu=8, used: held.cpu=60, limited: "
        "held.cpu=64; it holds once there is room in the quota"
    )
    assert ledger.excess(ref("b")) == exceeded
    behind = f"waits behind shop/store/b, which is older: {exceeded}"
    assert ledger.excess(ref("c")) == behind
    assert not ledger.seats(pod("pod-b"))
    written = ledger.get(ref("b"))
    assert written
    status = ShortNodes.of(ledger._snapshot).status(written, ledger)
    assert (status.phase, status.is_backed, status.exceeds_quota) == (Phase.PENDING, False, True)
    assert (status.message, status.reason) == (exceeded, "QuotaExceeded")
    assert ledger.quotas.pending(NAMESPACE) == 2
    write(ledger, ("d", 65))
    assert ledger.excess(ref("d")) == (
        "exceeded quota: team-quota, requested: held.cpu=65, used: held.cpu=60, limited: "
        "held.cpu=64; ask for less, or have the quota raised"
    )
    assert (ledger.quotas.pending(NAMESPACE), ledger.quotas.pending("other")) == (3, 0)
    assert set(ledger.quotas.namespaces()) == {NAMESPACE}


def test_a_slot_is_free_only_once_the_binding_of_who_took_it_is_written() -> None:
    ledger = ledger_of(quota(cpu="8"))
    first = reservation("a", cpu="4", slots=2, owners=["x", "y"])
    ledger.put(first)
    write(ledger, ("b", 4))
    ledger.claim(first.identity, pod("x", node="worker-1"), written=False)
    assert holding(ledger) == {"a"}
    ledger.unclaim("uid-x")
    assert ledger.held_on("worker-1")["cpu"] == 8000
    ledger.claim(first.identity, pod("x", node="worker-1"), written=False)
    ledger.written("uid-x")
    assert holding(ledger) == {"a", "b"}


def test_reusable_slots_count_in_full() -> None:
    ledger = ledger_of(quota(cpu="8"))
    pool = reservation("a", cpu="4", slots=2, owners=["x", "y"], reusable=True)
    ledger.put(pool)
    ledger.claim(pool.identity, pod("x", node="worker-1"))
    write(ledger, ("b", 4))
    assert holding(ledger) == {"a"}


def test_what_starts_later_and_what_has_no_place_yet_counts_from_its_writing_on() -> None:
    ledger = ledger_of(quota(cpu="8"))
    ledger.put(reservation("later", cpu="4", starts=100.0))
    ledger.put(reservation("unplaced", cpu="4", node=""))
    write(ledger, ("b", 1))
    assert holding(ledger) == set()
    assert ledger.phase(ref("b")) is Phase.PENDING
    assert ledger.quotas.used(NAMESPACE) == {
        "held.cpu": 8000,
        "held.pods": 2,
        "reservations": 2,
    }
    ledger.advance(100.0)
    assert holding(ledger) == {"later"}


def test_all_of_several_quotas_have_to_be_met() -> None:
    ledger = ledger_of(quota(cpu="8"), quota("memory", memory="4Gi"))
    ledger.put(reservation("a", cpu="1", memory="3Gi"))
    ledger.put(reservation("b", cpu="1", memory="2Gi"))
    assert holding(ledger) == {"a"}
    assert ledger.excess(ref("b")).startswith("exceeded quota: memory, requested: held.memory=2Gi")


def test_a_namespace_without_a_quota_has_the_default_and_home_has_none() -> None:
    ledger = ledger_of(default=quota("default", cpu="1"))
    write(ledger, ("a", 2))
    at_home = replace(reservation("b", cpu="2"), ref=ref("b")._replace(namespace="reserver-system"))
    ledger.put(at_home)
    assert holding(ledger) == {"b"}
    assert "exceeded quota: default" in ledger.excess(ref("a"))
    limit(ledger, quota(cpu="2"))
    assert holding(ledger) == {"a", "b"}
    limit(ledger)
    assert holding(ledger) == {"a", "b"}
    assert "exceeded quota: default" in ledger.exceeds(ref("a"))
    write(ledger, ("c", 1))
    assert holding(ledger) == {"a", "b"}


def test_a_copy_in_the_same_namespace_counts_once_and_one_elsewhere_does_not_end_a_hold() -> None:
    ledger = ledger_of(quota(cpu="4"))
    first = reservation("a", cpu="4")
    copy = replace(first, ref=ref("copy"), origin=str(first.ref))
    forged = replace(copy, ref=ref("forged")._replace(namespace="other"))
    ledger.quotas.limit("other", [quota("none", cpu="0")])
    ledger.put(forged)
    assert ledger.held_on("worker-1").get("cpu", 0) == 0
    ledger.put(first)
    ledger.put(copy)
    assert ledger.held_on("worker-1")["cpu"] == 4000
    assert ledger.quotas.used(NAMESPACE)["reservations"] == 1
    ledger.drop(first.ref)
    assert ledger.held_on("worker-1")["cpu"] == 4000
    ledger.drop(copy.ref)
    assert ledger.held_on("worker-1").get("cpu", 0) == 0


def test_a_trial_says_whether_some_could_hold_at_once() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3))
    old = ledger.get(ref("a"))
    four = reservation("n", cpu="4")
    assert not ledger.quotas.trial([four], 0.0)
    assert "requested: held.cpu=8, used: held.cpu=3" in ledger.quotas.trial([four, four], 0.0)
    assert not ledger.quotas.trial([reservation("a", cpu="8")], 0.0, old)
    write(ledger, ("b", 6))
    assert ledger.quotas.trial([reservation("n", cpu="1")], 0.0).startswith(
        "shop/store/b is older and waits"
    )
    waiting = ledger.get(ref("b"))
    assert not ledger.quotas.trial([reservation("b", cpu="4")], 0.0, waiting), "it is the first"
    assert "never expires" in replace_and_try(ledger, four)


def replace_and_try(ledger: Ledger, one: Reservation) -> str:
    limit(ledger, quota(ttl=WEEK))
    return ledger.quotas.trial([one], 0.0)


def test_what_waits_is_kept_where_it_was_placed_and_holds_nothing_there() -> None:
    ledger = ledger_of(quota(cpu="7"))
    ledger.put(reservation("a", cpu="8", node="", placed={"worker-2": 1}))
    assert not ledger.held_on("worker-2")
    assert not ledger.is_unplaced(ref("a"))
    limit(ledger, quota(cpu="8"))
    assert ledger.held_on("worker-2")["cpu"] == 8000
    assert ledger.get(ref("a")).placed == parts({"worker-2": 1})  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("hard", "admitted"),
    [
        ({}, True),
        ({"reservations": 5}, True),
        ({"held.cpu": 100}, False),  # A whole node has CPUs, too.
        ({"held.cpu": 100, "held.nodes": 1}, True),
        ({"held.nodes": 0}, False),
        ({"held.*": 0}, False),
    ],
)
def test_whole_nodes_count_as_such_and_as_none_where_others_are_limited(
    hard: dict[str, int], *, admitted: bool
) -> None:
    ledger = ledger_of(Quota(name="team", hard=hard))
    whole = replace(reservation("whole", node="", placed={"worker-1": 1}), resources={"nodes": 1})
    ledger.put(whole)
    assert any_held(ledger, whole) is admitted
    assert (ledger.excess(whole.ref) == "") is admitted
