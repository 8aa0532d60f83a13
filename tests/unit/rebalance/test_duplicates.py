"""RemoveDuplicates: state in, evictions out, for each of its options."""

from typing import Any

import pytest

from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.placement import RemoveDuplicates
from tests.unit.rebalance.build import Objects, evicted, node, pod, pods, taint

NODES = [node("a"), node("b"), node("c")]

OTHER_OWNER: dict[str, Any] = {
    "metadata": {"ownerReferences": [{"kind": "Job", "name": "x", "uid": "x"}]}
}
BOTH_OWNERS: dict[str, Any] = {
    "metadata": {
        "ownerReferences": [
            {"kind": "Job", "name": "x", "uid": "x"},
            {"kind": "Job", "name": "y", "uid": "y"},
        ]
    }
}
DUPLICATES = RemoveDuplicates()

SPREAD_EVENLY: dict[str, tuple[Objects, RemoveDuplicates, list[str]]] = {
    "beyond an even spread": ([*NODES, *pods(3, "a")], DUPLICATES, ["p1", "p2"]),
    "an even spread": (
        [*NODES, *pods(2, "a"), *pods(2, "b", "q"), *pods(2, "c", "r")],
        DUPLICATES,
        [],
    ),
    "the average is rounded up": ([*NODES, *pods(4, "a")], DUPLICATES, ["p2", "p3"]),
    "different images": ([*NODES, pod("p", "a"), pod("q", "a", image="x")], DUPLICATES, []),
    "different owners": ([*NODES, pod("p", "a"), pod("q", "a", **OTHER_OWNER)], DUPLICATES, []),
    "different namespaces": (
        [*NODES, pod("p", "a"), pod("q", "a", namespace="other")],
        DUPLICATES,
        [],
    ),
    "a kind of owners is excluded": (
        [*NODES, *pods(3, "a", **OTHER_OWNER)],
        RemoveDuplicates(exclude_owner_kinds=frozenset({"Job"})),
        [],
    ),
    "namespaces are excluded": (
        [*NODES, *pods(3, "a")],
        RemoveDuplicates(namespaces=Choice(exclude=frozenset({"shop"}))),
        [],
    ),
    "pods of two owners go once": (
        [*NODES, *pods(3, "a", **BOTH_OWNERS)],
        DUPLICATES,
        ["p1", "p2"],
    ),
    "protected pods are not counted": (
        [*NODES, *pods(2, "a"), *pods(2, "a", "q", spec={"volumes": [{"emptyDir": {}}]})],
        DUPLICATES,
        ["p1"],
    ),
    "a taint leaves one node to go to": (
        [node("a"), node("b", taints=[taint("k")]), *pods(3, "a")],
        DUPLICATES,
        [],
    ),
    "a node selector leaves one": (
        [
            node("a", labels={"pool": "x"}),
            node("b"),
            *pods(3, "a", spec={"nodeSelector": {"pool": "x"}}),
        ],
        DUPLICATES,
        [],
    ),
    "cordons and room are ignored": (
        [node("a"), node("b", cordoned=True, offer={"pods": "0"}), *pods(2, "a")],
        DUPLICATES,
        ["p1"],
    ),
}


@pytest.mark.parametrize("name", SPREAD_EVENLY)
def test_remove_duplicates(name: str) -> None:
    objects, args, goes = SPREAD_EVENLY[name]

    assert evicted(objects, args) == goes
