"""DefaultEvictor with nodeFit: pods that fit on another node."""

from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.recycling import PodLifeTime
from tests.unit.rebalance.build import evicted, node, pod, taint
from tests.unit.rebalance.evicting import ALL_PODS, BARE, spec

FIT = DefaultEvictor(node_fit=True)
ZONE = {"labels": {"zone": "1"}}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
        ]
    }
}
DB = {"metadata": {"labels": {"app": "db"}}}
GT = {"key": "k", "operator": "Gt", "value": "5"}
DUE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
            ]
        }
    }
}

FITS: dict[str, tuple[bool, dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    # Does the pod fit on b, the other node? The pod, b, and what else there is.
    "an empty node": (True, {}, {}, []),
    "a cordoned node": (False, {}, {"cordoned": True}, []),
    "a taint": (False, {}, {"taints": [taint("k")]}, []),
    "a taint NoExecute": (False, {}, {"taints": [taint("k", effect="NoExecute")]}, []),
    "a soft taint": (True, {}, {"taints": [taint("k", effect="PreferNoSchedule")]}, []),
    "a taint that is tolerated": (
        True,
        spec(tolerations=[{"key": "k", "operator": "Exists"}]),
        {"taints": [taint("k")]},
        [],
    ),
    "a taint above a number": (True, spec(tolerations=[GT]), {"taints": [taint("k", "6")]}, []),
    "a taint at a number": (False, spec(tolerations=[GT]), {"taints": [taint("k", "5")]}, []),
    "a taint that is no number": (
        False,
        spec(tolerations=[GT]),
        {"taints": [taint("k", "x")]},
        [],
    ),
    "a node selector": (False, spec(nodeSelector={"zone": "2"}), ZONE, []),
    "a node selector that matches": (True, spec(nodeSelector={"zone": "1"}), ZONE, []),
    "a node by its name": (True, spec(affinity=DUE), {}, []),
    "enough room": (True, {"requests": {"cpu": "3"}}, {}, [pod("x", "b", requests={"cpu": "1"})]),
    "no room": (False, {"requests": {"cpu": "3"}}, {}, [pod("x", "b", requests={"cpu": "1001m"})]),
    "room that only ended pods have": (
        True,
        {"requests": {"cpu": "4"}},
        {},
        [pod("x", "b", requests={"cpu": "4"}, status={"phase": "Succeeded"})],
    ),
    "no slot": (False, {}, {"offer": {"pods": "1"}}, [pod("x", "b")]),
    "no pods at all": (False, {}, {"allocatable": {"cpu": "4"}}, []),
    "a device that the node lacks": (False, {"requests": {"example.com/gpu": "1"}}, {}, []),
    "none of a device that the node lacks": (
        True,
        {"requests": {"example.com/gpu": "0"}},
        {},
        [pod("x", "b", requests={"example.com/gpu": "5"})],
    ),
    "nothing of what is overcommitted": (
        False,
        {"requests": {"cpu": "0"}},
        {},
        [pod("x", "b", requests={"cpu": "5"})],
    ),
    "what is overcommitted is not asked for": (
        True,
        {"requests": {"memory": "1"}},
        {},
        [pod("x", "b", requests={"cpu": "5"})],
    ),
    "a pod that it keeps away from": (False, spec(affinity=APART), ZONE, [pod("x", "b", **DB)]),
    "that pod on a node without the label": (
        True,
        spec(affinity=APART),
        {},
        [pod("x", "b", **DB)],
    ),
    "that pod in another namespace": (
        True,
        spec(affinity=APART),
        ZONE,
        [pod("x", "b", namespace="other", **DB)],
    ),
    "that pod has ended": (
        True,
        spec(affinity=APART),
        ZONE,
        [pod("x", "b", status={"phase": "Failed"}, **DB)],
    ),
    "another pod of its own name": (
        True,
        spec(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {},
                            "namespaces": ["other"],
                            "topologyKey": "zone",
                        }
                    ]
                }
            }
        ),
        ZONE,
        [pod("it", "b", namespace="other", **BARE)],
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_with_node_fit_only_pods_go_that_fit_on_another_node(name: str) -> None:
    fits, it, other, more = FITS[name]
    others = [{**each, "metadata": {**each["metadata"], "ownerReferences": []}} for each in more]
    nodes = [node("a", labels={"zone": "1"}), node("b", **other)]

    names = evicted([*nodes, pod("it", "a", **it), *others], ALL_PODS, evictor=FIT)

    assert names == (["it"] if fits else [])


def test_node_fit_looks_at_the_evictors_nodes_not_at_the_policys() -> None:
    nodes = [node("a", **ZONE), node("b", **ZONE), node("c", labels={"zone": "2"})]
    elsewhere = DefaultEvictor(node_fit=True, node_selector=equals({"zone": "2"}))
    wants_c = spec(nodeSelector={"zone": "2"})
    wants_b = spec(nodeSelector={"zone": "1"})

    def goes(part: dict[str, Any], evictor: DefaultEvictor) -> bool:
        objects = [*nodes, pod("it", "a", **part)]
        return bool(
            evicted(objects, ALL_PODS, evictor=evictor, node_selector=equals({"zone": "1"}))
        )

    assert goes(wants_c, elsewhere)
    assert goes(wants_c, FIT)
    assert goes(wants_b, FIT)
    assert not goes(wants_b, elsewhere)


def test_a_node_that_is_not_ready_takes_nothing() -> None:
    nodes = [node("a"), node("b", conditions=[{"type": "Ready", "status": "Unknown"}])]
    full = node("c", offer={"pods": "0"})

    assert evicted([*nodes, full, pod("it", "a")], ALL_PODS, evictor=FIT) == []
    assert evicted([*nodes, node("d"), pod("it", "a")], ALL_PODS, evictor=FIT) == ["it"]


def test_what_a_pod_leaves_is_room_for_the_next_one() -> None:
    full = {"requests": {"cpu": "4"}}
    first = pod("first", "a", metadata={"labels": {"go": "first"}}, **full)
    second = pod("second", "b", **full)
    first_one = PodLifeTime(states=frozenset({"Running"}), label_selector=equals({"go": "first"}))
    nodes = [node("a"), node("b"), node("c")]

    assert evicted([*nodes[:2], first, second], first_one, ALL_PODS, evictor=FIT) == []
    assert evicted([*nodes, first, second], first_one, ALL_PODS, evictor=FIT) == ["first", "second"]
