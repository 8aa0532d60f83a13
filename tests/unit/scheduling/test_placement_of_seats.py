"""The placement of the seat of a move to a named node."""

from dataclasses import replace

import pytest

from reserver.cluster.constraints import NodeTerm, Taint
from reserver.cluster.labels import EVERYTHING, Requirement, Selector
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from tests.builders import demanding, node, pod
from tests.unit.scheduling.slots import THREE, WEB, go, wanted


def on(*names: str) -> NodeTerm:
    """Return a term of nodes with these names."""
    return NodeTerm(EVERYTHING, Selector((Requirement("metadata.name", "In", frozenset(names)),)))


def seat(*names: str, cpu: str = "2") -> Reservation:
    """Return the seat of a move to nodes with these names."""
    terms = (on(*names),) if names else None
    asked = wanted(rules=[WEB], placement=demanding(node_terms=terms), cpu=cpu)
    return replace(asked, is_seat=True)


FULL = (*THREE, pod("there", node="b", cpu="7"))
TAINTED = node("b", cpu="8", taints=[Taint("k", "v", "NoSchedule")])
TWICE = replace(seat("b"), placement=demanding(node_terms=(on("b"), on("b"))))
NAMED = replace(seat("b"), rules=(), owners=(pod("big").name,))


@pytest.mark.parametrize(
    ("asked", "things", "expected"),
    [
        (seat("b"), FULL, {"b": 1}),
        (NAMED, FULL, {"b": 1}),
        (TWICE, FULL, {"b": 1}),
        (seat(cpu="6"), [node("b", cpu="8"), FULL[-1]], {}),
        (seat("a", "b", cpu="7"), [*FULL, pod("too", node="a", cpu="7")], {}),
        (replace(seat("b"), is_seat=False), FULL, {}),
        (seat("b", cpu="9"), FULL, {}),
        (seat("b"), [TAINTED], {}),
        (seat("gone"), FULL, {}),
    ],
    ids=[
        "its node is full",
        "a pod without a node is to have it",
        "all alternatives name it",
        "it names no node",
        "it names two",
        "it is nobody's seat",
        "its node is too small",
        "its node has a taint",
        "its node is not there",
    ],
)
def test_the_seat_of_a_move_to_a_named_node_holds_what_others_leave_there(
    asked: Reservation, things: list[Node | Pod | Reservation], expected: dict[str, int]
) -> None:
    assert go(asked, *things) == expected
