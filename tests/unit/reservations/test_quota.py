"""Quotas: who may hold, who waits, and who can never come in."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.constraints import Constraints, NodeTerm, PodTerm
from reserver.cluster.labels import EVERYTHING, Requirement, Selector, equals
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.placement import Placement
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import AT_ONCE, Quotas
from reserver.reservations.reservation import Reservation, Written
from reserver.reservations.status import ShortNodes
from tests.builders import NAMESPACE, amounts, node, parts, pod, ref, reservation

WEEK = 168 * 3600.0


def quota(name: str = "team", ttl: float | None = None, **hard: str) -> Quota:
    """Return a quota: `reservations`, and of all else what may be held."""
    found = {
        "reservations" if counted == "reservations" else f"held.{counted}": amount
        for counted, amount in amounts(hard).items()
    }
    return Quota(name=name, hard=found, max_ttl=ttl)


def ledger_of(*quotas: Quota, default: Quota | None = None, is_open: bool = True) -> Ledger:
    snapshot = Snapshot()
    for worker in ("worker-1", "worker-2"):
        snapshot.set_node(node(worker, cpu="1k", memory="1Ti"))
    ledger = Ledger(snapshot, quotas=Quotas(default, ("reserver-system",), is_open=is_open))
    ledger.quotas.limit(NAMESPACE, quotas)
    return ledger


def drain(ledger: Ledger) -> None:
    for _ in ledger.admit(NAMESPACE):
        pass


def limit(ledger: Ledger, *quotas: Quota) -> None:
    ledger.quotas.limit(NAMESPACE, quotas)
    drain(ledger)


def holding(ledger: Ledger) -> set[str]:
    return {r.ref.key for r, _ in ledger if ledger.holding(r.ref) and any_held(ledger, r)}


def any_held(ledger: Ledger, one: Reservation) -> bool:
    return any(ledger.holding(one.ref).values())


def write(ledger: Ledger, *sizes: tuple[str, int]) -> None:
    for key, cpu in sizes:
        ledger.put(reservation(key, cpu=str(cpu), owners=[f"pod-{key}"]))


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


def test_one_that_grows_takes_a_new_turn_and_one_that_does_not_keeps_its_own() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3), ("c", 6), ("d", 2))
    assert holding(ledger) == {"a", "b"}
    ledger.put(reservation("a", cpu="3", expires=100.0))  # It says something else, and no more.
    assert holding(ledger) == {"a", "b"}
    ledger.put(reservation("a", cpu="4"))
    assert holding(ledger) == {"b"}  # c waited before it, and 3 + 6 are too many.
    ledger.drop(ref("c"))
    assert holding(ledger) == {"b", "d"}
    ledger.drop(ref("b"))
    assert holding(ledger) == {"a", "d"}


def test_one_that_grows_stays_if_there_is_room_and_nobody_waits() -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3))
    ledger.put(reservation("a", cpu="5"))
    assert holding(ledger) == {"a", "b"}


def names_node(node: str = "", **constraints: object) -> Reservation:
    placement = Placement(constraints=Constraints(**constraints))  # type: ignore[arg-type]
    return reservation("a", node=node, cpu="1", placement=placement)


def beside(*topology_keys: str) -> Reservation:
    """Return a reservation that wants to be beside pods, which may be the tenant's own."""
    own = equals({"x": "y"})
    return names_node(affinity=tuple(PodTerm(own, key) for key in topology_keys))


HOSTNAME = Selector((Requirement("kubernetes.io/hostname", "In", frozenset({"worker-1"})),))


@pytest.mark.parametrize(
    ("changes", "written", "why"),
    [
        ({"max_ttl": WEEK}, reservation("a", cpu="1"), "never expires"),
        ({"max_ttl": WEEK}, reservation("a", cpu="1", expires=WEEK + 1), "ttl=168h1s"),
        ({"max_ttl": WEEK}, reservation("a", cpu="1", expires=WEEK), ""),
        ({"max_ttl": 1.0}, reservation("a", cpu="1", starts=5.0, expires=5.5), "ttl=6s"),
        ({"allows_node_names": False}, reservation("a", cpu="1"), "nodeNames=Forbidden"),
        (
            {"allows_node_names": False},
            names_node(node_selector=equals({"kubernetes.io/hostname": "worker-1"})),
            "nodeNames=Forbidden",
        ),
        (
            {"allows_node_names": False},
            names_node(node_terms=(NodeTerm(HOSTNAME),)),
            "nodeNames=Forbidden",
        ),
        (
            {"allows_node_names": False},
            names_node(node_terms=(NodeTerm(Selector(()), equals({"metadata.name": "w"})),)),
            "nodeNames=Forbidden",
        ),
        ({"allows_node_names": False}, names_node(node_selector=equals({"disk": "ssd"})), ""),
        ({"allows_node_names": False}, beside("kubernetes.io/hostname"), "nodeNames=Forbidden"),
        ({"allows_node_names": False}, beside("example.com/machine"), "nodeNames=Forbidden"),
        (
            {"allows_node_names": False},
            beside("topology.kubernetes.io/zone", "kubernetes.io/hostname"),
            "nodeNames=Forbidden",
        ),
        ({"allows_node_names": False}, beside("topology.kubernetes.io/zone"), ""),
        (
            {"allows_node_names": False},
            names_node(anti_affinity=(PodTerm(EVERYTHING, "kubernetes.io/hostname"),)),
            "",
        ),
        ({"allows_firm_holds": False}, reservation("a", cpu="1"), "firmHolds=Forbidden"),
        ({"allows_firm_holds": False}, reservation("a", cpu="1", yields_above=0), ""),
        ({"hard": {"held.cpu": 999}}, reservation("a", cpu="1"), "requested: held.cpu=1, used"),
        ({"hard": {"held.*": 0}}, reservation("a", gpu="1"), "held.nvidia.com/gpu=1"),
        ({"hard": {"held.*": 0, "held.pods": 1, "held.cpu": 1000}}, reservation("a", cpu="1"), ""),
        ({"hard": {"reservations": 0}}, reservation("a", cpu="1"), "reservations=1"),
    ],
)
def test_who_could_not_come_in_if_it_were_alone_is_passed_over(
    changes: Mapping[str, object], written: Reservation, why: str
) -> None:
    ledger = ledger_of(replace(quota(), **changes))  # type: ignore[arg-type]
    ledger.put(written)
    assert why in ledger.excess(ref("a"))
    assert bool(why) == bool(ledger.excess(ref("a")))
    limit(ledger)
    assert not ledger.excess(ref("a"))


def test_all_of_several_quotas_have_to_be_met() -> None:
    ledger = ledger_of(quota(cpu="8"), quota("memory", memory="4Gi"))
    ledger.put(reservation("a", cpu="1", memory="3Gi"))
    ledger.put(reservation("b", cpu="1", memory="2Gi"))
    assert holding(ledger) == {"a"}
    assert ledger.excess(ref("b")).startswith("exceeded quota: memory, requested: held.memory=2Gi")


@pytest.mark.parametrize(
    ("after", "in_"),
    [
        ([quota(cpu="100")], "abcd"),
        ([], "abcd"),
        ([quota(cpu="5")], "ab"),
        ([quota(cpu="2")], "ab"),
        ([quota(reservations="1")], "ab"),
        ([quota(memory="0")], "abcd"),
    ],
    ids=["raised", "gone", "lowered", "lowered below the first", "by number", "of nothing held"],
)
def test_other_limits_count_at_once_for_what_is_new_and_what_is_in_stays_in(
    after: Iterable[Quota], in_: str
) -> None:
    ledger = ledger_of(quota(cpu="8"))
    write(ledger, ("a", 3), ("b", 3), ("c", 5), ("d", 2))
    assert holding(ledger) == {"a", "b"}
    limit(ledger, *after)
    assert holding(ledger) == set(in_)
    limit(ledger, quota(cpu="8"))
    assert len(holding(ledger)) >= 1


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


def test_another_default_counts_where_there_is_no_quota_and_takes_no_hold_away() -> None:
    ledger = ledger_of(default=quota("default", cpu="1"))
    write(ledger, ("a", 1), ("b", 2))
    assert holding(ledger) == {"a"}
    for default, in_ in ((quota("default", cpu="3"), "ab"), (quota("default", cpu="2"), "ab")):
        assert len(list(ledger.quotas.default_to(default))) == 1
        drain(ledger)
        assert holding(ledger) == set(in_)
    assert "exceeded quota: default" in ledger.exceeds(ref("a"))
    limit(ledger, quota(cpu="4"))
    list(ledger.quotas.default_to(None))
    assert ledger.quotas.of(NAMESPACE) == (quota(cpu="4"),)


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


_LATER = 30 * 86400.0


@pytest.mark.parametrize(
    "lowered",
    [
        quota(cpu="7"),
        quota(reservations="0"),
        replace(quota("default"), hard={"held.nvidia.com/gpu": 0}),
        replace(quota(), max_ttl=3600.0),
        replace(quota(), allows_node_names=False),
        replace(quota(), allows_firm_holds=False),
    ],
    ids=["cpu", "number", "a device", "a life", "names", "firm holds"],
)
@pytest.mark.parametrize("by", ["a limit", "a start"])
def test_what_held_before_a_limit_holds_on_and_says_what_it_exceeds(
    lowered: Quota, by: str
) -> None:
    kept = reservation("a", cpu="8")
    resources = {**kept.resources, "nvidia.com/gpu": 1}
    kept = replace(kept, resources=resources, expires_at=None, created_at=1.0)
    ledger = ledger_of(lowered, is_open=False) if by == "a start" else ledger_of()
    ledger.put(kept)
    ledger.put(new := replace(kept, ref=ref("new"), origin="new", digest="new"))
    if by == "a start":
        ledger.was_admitted(ref("a"), kept.digest)
        for _ in ledger.open():
            pass
        assert holding(ledger) == {"a"}
        assert ledger.excess(ref("new"))
    else:
        limit(ledger, lowered)
        assert holding(ledger) == {"a", "new"}
        ledger.drop(new.ref)
    assert ledger.exceeds(ref("a")).startswith(f"exceeded quota: {lowered.name}")
    assert ledger.exceeds(ref("a")).endswith("it was admitted before that, and holds")
    limit(ledger)
    assert not ledger.exceeds(ref("a"))


def test_an_edit_from_before_it_was_admitted_costs_nothing() -> None:
    ledger = ledger_of(quota(cpu="4"))
    waits = replace(reservation("a", cpu="8"), expires_at=60.0, created_at=1.0, origin="a")
    ledger.put(waits)
    edited = replace(waits, expires_at=None, resources={"cpu": 7000}, digest="edited")
    ledger.put(edited)
    assert holding(ledger) == set()
    limit(ledger)
    assert holding(ledger) == {"a"}
    limit(ledger, quota(ttl=3600.0))
    assert holding(ledger) == {"a"}


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param({"resources": {"cpu": 4000}}, True, id="it asks for less"),
        pytest.param({"expires_at": _LATER}, True, id="it lives shorter, and still too long"),
        pytest.param({"resources": {"cpu": 9000}}, False, id="it asks for more"),
        pytest.param({"yields_above": None}, False, id="what is forbidden, and was not asked for"),
    ],
)
def test_an_edit_of_what_exceeds_a_limit_is_new_where_it_asks_for_more(
    change: dict[str, Any], *, stays: bool
) -> None:
    made = reservation("a", cpu="8")
    kept = replace(made, expires_at=None, created_at=1.0, origin="a", yields_above=0)
    ledger = ledger_of()
    ledger.put(kept)
    limit(ledger, replace(quota(cpu="1"), max_ttl=3600.0, allows_firm_holds=False))
    ledger.put(replace(kept, **change, digest="edited"))
    for _ in ledger.admit(kept.ref.namespace):
        pass
    assert (holding(ledger) == {"a"}) is stays


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
