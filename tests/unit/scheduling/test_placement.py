"""The placement of a reservation without a node: a cluster in, slots by node or reasons out."""

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.constraints import NodeTerm, PodTerm, Spread, Taint, Toleration
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.enums import Strategy
from reserver.reservations.placement import Placement
from reserver.reservations.reservation import Reservation
from reserver.scheduling.placement import NO_NODES, Placed, placing
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, demanding, held, node, place, pod, reservation, state_of
from tests.unit.scheduling.slots import APART, THREE, WEB, go, placed, wanted, workers

ZONE = "topology.kubernetes.io/zone"
BUSY = pod("busy", node="b", cpu="4")
SPREAD = Placement(strategy=Strategy.SPREAD)


@pytest.mark.parametrize(
    ("asked", "things", "expected"),
    [
        (wanted(), [*THREE, BUSY], {"b": 1}),
        (wanted(2), [*THREE, BUSY], {"b": 2}),
        (wanted(3), [*THREE, BUSY], {"a": 3}),
        (wanted(6), [*THREE, BUSY], {"a": 4, "b": 2}),
        (wanted(placement=SPREAD), [node("a", cpu="8"), node("b", cpu="9")], {"b": 1}),
        (wanted(3, placement=SPREAD), THREE, {"a": 1, "b": 1, "c": 1}),
        (wanted(4, placement=SPREAD), [*THREE, BUSY], {"a": 2, "c": 2}),
        (
            wanted(5, placement=SPREAD),
            [*THREE, pod("p", node="b", cpu="3")],
            {"a": 2, "b": 1, "c": 2},
        ),
        (wanted(10, placement=SPREAD), [*THREE, BUSY], {"a": 4, "b": 2, "c": 4}),
        (wanted(2, cpu="5"), [*THREE, BUSY], {"a": 1, "c": 1}),
        (wanted(cpu="1", gpu="1"), [*THREE, node("g", cpu="4", gpu="2")], {"g": 1}),
        (wanted(pods="3"), [node("a", cpu="8", pods="2"), node("b", cpu="8")], {"b": 1}),
    ],
    ids=[
        "the fullest",
        "the fullest that has room for all",
        "the fullest has not",
        "none has room for all",
        "the emptiest once it is there",
        "each on its own",
        "the busy one is fullest",
        "until all are as full",
        "all there is",
        "one for each node",
        "a resource that one node has",
        "pods are a resource",
    ],
)
def test_the_strategy_chooses(
    asked: Reservation, things: list[Node | Pod | Reservation], expected: dict[str, int]
) -> None:
    assert go(asked, *things) == expected


@pytest.mark.parametrize(
    ("asked", "things", "expected"),
    [
        (wanted(), [*workers(a="8", b="4"), pod("p", node="b", cpu="3")], {"a": 1}),
        (wanted(), [*workers(a="8", b="4"), reservation("x", node="b", cpu="3")], {"a": 1}),
        (wanted(), [*workers(a="8", b="4"), pod("p", nominated="b", cpu="3")], {"a": 1}),
        (
            wanted(),
            [*workers(a="8", b="4"), reservation("x", node="b", yields_above=0, cpu="3")],
            {"a": 1},
        ),
        (wanted(), [node("a", cpu="4", taints=[Taint("k", "v", "NoSchedule")])], {}),
        (
            wanted(placement=demanding(tolerations=(Toleration("k", "Exists"),))),
            [node("a", cpu="4", taints=[Taint("k", "v", "NoSchedule")])],
            {"a": 1},
        ),
        (wanted(placement=demanding(node_selector=equals({"disk": "ssd"}))), THREE, {}),
        (
            wanted(placement=demanding(node_selector=equals({"disk": "ssd"}))),
            [*THREE, node("s", cpu="8", labels={"disk": "ssd"})],
            {"s": 1},
        ),
        (
            wanted(placement=demanding(node_terms=(NodeTerm(equals({"disk": "ssd"})),))),
            [*THREE, node("s", cpu="8", labels={"disk": "ssd"})],
            {"s": 1},
        ),
        (
            wanted(placement=demanding(affinity=(APART,))),
            [
                node("a", cpu="8", labels={"kubernetes.io/hostname": "a"}),
                node("b", cpu="8", labels={"kubernetes.io/hostname": "b"}),
                pod("p", node="b", labels={"app": "web"}, cpu="1"),
            ],
            {"b": 1},
        ),
    ],
    ids=[
        "pods",
        "holds",
        "what is promised to who preempted",
        "holds that yield to others",
        "a taint",
        "a taint that is tolerated",
        "no such label",
        "a label",
        "an affinity",
        "a neighbour",
    ],
)
def test_a_slot_is_judged_as_its_owner_will_be(
    asked: Reservation, things: list[Node | Pod | Reservation], expected: dict[str, int]
) -> None:
    assert go(asked, *things) == expected


def test_slots_that_mind_each_other_are_kept_apart() -> None:
    hosts = [node(n, cpu="8", labels={"kubernetes.io/hostname": n}) for n in ("a", "b", "c")]
    apart = demanding(anti_affinity=(APART,))
    asked = wanted(3, owners=(), rules=[WEB], placement=apart)
    assert go(asked, *hosts) == {"a": 1, "b": 1, "c": 1}
    fourth = wanted(4, owners=(), rules=[WEB], placement=apart)
    assert placed(fourth, *hosts).why.startswith("there is room for 3 of 4 slots; ")


def test_slots_are_spread_over_zones_and_nothing_stays_behind() -> None:
    zones = {"a": "x", "b": "x", "c": "y"}
    state = state_of(*(node(n, cpu="16", labels={ZONE: zone}) for n, zone in zones.items()))
    spread = demanding(spread=(Spread(topology_key=ZONE, selector=equals({"app": "web"})),))
    asked = wanted(6, owners=(), rules=[WEB], placement=spread)
    taken, rows = state.snapshot.requested.copy(), state.snapshot.residents.rows.copy()
    parts = dict(place(asked, 6, state).parts)
    assert parts["c"] == 3
    assert parts.get("a", 0) + parts.get("b", 0) == 3
    assert (state.snapshot.requested == taken).all()
    assert (state.snapshot.residents.rows == rows).all()


@pytest.mark.parametrize(
    ("asked", "things", "why", "never"),
    [
        (wanted(), [], NO_NODES, False),
        (wanted(cpu="9"), THREE, "0/3 nodes are available: 3 Insufficient cpu.", True),
        (
            wanted(cpu="8"),
            [*workers(a="8", b="4"), pod("p", node="a", cpu="1")],
            "0/2 nodes are available: 2 Insufficient cpu.",
            False,
        ),
        (
            wanted(cpu="8"),
            [*workers(a="8"), reservation("x", node="a", cpu="1")],
            "0/1 nodes are available: 1 capacity held by reservations.",
            False,
        ),
        (wanted(gpu="1"), THREE, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", True),
        (
            wanted(5, cpu="4"),
            [*THREE, BUSY, pod("more", node="b", cpu="4")],
            "there is room for 4 of 5 slots; 2/3 nodes are available: 1 Insufficient cpu.",
            False,
        ),
        (
            wanted(7, cpu="4"),
            THREE,
            "there is room for 6 of 7 slots; 3/3 nodes are available.",
            True,
        ),
        (
            wanted(),
            [node("a", cpu="4", taints=[Taint("k", "v", "NoSchedule")])],
            "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
            False,
        ),
    ],
    ids=[
        "no nodes",
        "too small",
        "too full",
        "held",
        "no such resource",
        "too few",
        "never enough",
        "tainted for now",
    ],
)
def test_why_there_is_no_place(
    asked: Reservation,
    things: list[Node | Pod | Reservation],
    why: str,
    never: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert placed(asked, *things) == Placed((), why, never=never)


def test_what_is_placed_is_held_there() -> None:
    state: State = state_of(*THREE)
    asked = wanted(5, cpu="4")
    state.ledger.put(asked)
    state.ledger.place(asked.ref, place(asked, 5, state).parts)
    assert [held(state, name) for name in "abc"] == [8000, 8000, 4000]


def test_slots_whose_room_went_while_the_others_were_placed_go_elsewhere() -> None:
    term = PodTerm(equals({"app": "db"}), ZONE, frozenset({NAMESPACE}))
    zone = {ZONE: "z"}
    state = state_of(
        node("a", cpu="40", labels=zone),
        node("b", cpu="40", labels=zone),
        pod("db", node="b", labels={"app": "db"}),
    )
    steps = placing(wanted(12, placement=demanding(affinity=(term,))), 12, state)
    next(steps)
    state.ledger.put(reservation("late", node="a", cpu="40"))
    state.ledger.put(reservation("late-b", node="b", cpu="8"))
    placed = outcome(steps)
    assert dict(placed.parts) == {"b": 12}


def test_nothing_is_placed_where_an_object_cannot_be_read() -> None:
    state = state_of(node("a", cpu="4"))
    state.unreadable.note((NAMESPACE, "unreadable"), "a")
    assert place(wanted(1), 1, state).parts == ()
    state.unreadable.trust((NAMESPACE, "unreadable"))
    assert place(wanted(1), 1, state).parts
