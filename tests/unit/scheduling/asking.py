"""A Filter call in a cluster of three workers."""

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.verdicts import FilterVerdict
from tests.builders import NOW, node, pod, reservation, state_of

W1, W2, W3 = (node(f"worker-{number}", cpu="4") for number in (1, 2, 3))

NAMES = ["worker-1", "worker-2", "worker-3"]


def ask(
    asking: Pod, *things: Node | Pod | Reservation, names: list[str] | None = None
) -> FilterVerdict:
    """Filter these names in a cluster of three workers and some more objects."""
    state = state_of(W1, W2, W3, *things)
    return filter_nodes(asking, NAMES if names is None else names, state, NOW)


def answer(verdict: FilterVerdict) -> list[str]:
    return list(verdict.nodes)


def many(count: int) -> list[Node]:
    return [node(f"n{number}", cpu="4") for number in range(count)]


SEAT = reservation("r", node="worker-2", cpu="2")

OWNER = pod("owner", cpu="2")
