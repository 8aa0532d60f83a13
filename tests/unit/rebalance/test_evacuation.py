"""The pods without room elsewhere when a node is drained."""

from __future__ import annotations

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance.evacuation import without_room
from tests.builders import node, pod
from tests.unit.rebalance.scenes import cluster_of, list_of

A, B, C = (node(each, cpu="4") for each in "abc")


def missing(*things: Node | Pod, held: dict[str, dict[str, int]] | None = None) -> dict[str, str]:
    """Return the pods without room when all pods leave node a."""
    leaving = {each.name for each in things if isinstance(each, Pod) and each.node == "a"}
    found = without_room(cluster_of(*things), held or {}, "a", leaving)
    return {name.name: why for name, why in found.items()}


def test_pods_have_room_beside_each_other() -> None:
    things = list_of(A, pod("p", node="a", cpu="3"), pod("q", node="a", cpu="1"), B)
    assert missing(*things) == {}
    things.append(pod("r", node="b", cpu="1"))
    assert missing(*things) == {"q": "0/1 nodes are available: 1 Insufficient cpu."}


def test_pods_that_leave_make_way_for_each_other() -> None:
    """In largest-first order, a pod would take the node that a smaller pod needs."""
    things = list_of(A, B, node("c", cpu="3"))
    things += [pod(name, node="a", cpu=cpu) for name, cpu in zip("pqrs", "2221", strict=True)]
    assert missing(*things) == {}


def test_what_is_held_is_nobodys_room() -> None:
    things = list_of(A, pod("p", node="a", cpu="3"), B)
    assert missing(*things, held={"b": {"cpu": 2000}}) == {
        "p": "0/1 nodes are available: 1 capacity held by reservations."
    }


def test_a_node_that_is_not_there_has_no_pods() -> None:
    assert without_room(cluster_of(A), {}, "b", {PodName("default", "p")}) == {}
