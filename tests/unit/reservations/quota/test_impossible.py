"""Reservations that no wait can admit are passed over."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reserver.cluster.constraints import Constraints, NodeTerm, PodTerm
from reserver.cluster.labels import EVERYTHING, Requirement, Selector, equals
from reserver.reservations.placement import Placement
from reserver.reservations.reservation import Reservation
from tests.builders import pod, ref, reservation
from tests.unit.reservations.quota.limited import WEEK, ledger_of, limit, quota


def names_node(node: str = "", **constraints: object) -> Reservation:
    placement = Placement(constraints=Constraints(**constraints))  # type: ignore[arg-type]
    return reservation("a", node=node, cpu="1", placement=placement)


def beside(*topology_keys: str) -> Reservation:
    """Return a reservation with affinity to pods, which may be the tenant's own."""
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


def test_one_that_asks_for_too_much_comes_in_once_its_owners_have_taken_enough_slots() -> None:
    ledger = ledger_of(quota(cpu="2"))
    wanted = reservation("a", owners=("p1", "p2"), slots=2, cpu="2")
    ledger.put(wanted)
    assert "ask for less" in ledger.excess(ref("a"))
    ledger.claim(wanted.identity, pod("p1", node="worker-2"))
    assert not ledger.excess(ref("a"))
    assert ledger.held_on("worker-1")["cpu"] == 2000
