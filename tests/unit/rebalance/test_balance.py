"""The strategies that compare nodes: state in, evictions out, for each of their options."""

from collections import Counter
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import (
    RemoveDuplicates,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.selecting import Choice
from reserver.rebalance.arguments.utilization import (
    HighNodeUtilization,
    LowNodeUtilization,
    UsageSource,
)
from reserver.rebalance.inventory import PREFER_NO_EVICTION
from reserver.rebalance.policy import EvictionLimits
from tests.unit.rebalance.build import evicted, node, outcome, pod, taint

Objects = list[dict[str, Any]]

NODES = [node("a"), node("b"), node("c")]
FIT = DefaultEvictor(node_fit=True)


def _pods(count: int, on: str, prefix: str = "p", **parts: Any) -> Objects:
    return [pod(f"{prefix}{index}", on, **parts) for index in range(count)]


def _count(names: list[str]) -> Counter[str]:
    """Return how many names there are with each first letter."""
    return Counter(name[0] for name in names)


# RemoveDuplicates

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
    "beyond an even spread": ([*NODES, *_pods(3, "a")], DUPLICATES, ["p1", "p2"]),
    "an even spread": (
        [*NODES, *_pods(2, "a"), *_pods(2, "b", "q"), *_pods(2, "c", "r")],
        DUPLICATES,
        [],
    ),
    "the average is rounded up": ([*NODES, *_pods(4, "a")], DUPLICATES, ["p2", "p3"]),
    "different images": ([*NODES, pod("p", "a"), pod("q", "a", image="x")], DUPLICATES, []),
    "different owners": ([*NODES, pod("p", "a"), pod("q", "a", **OTHER_OWNER)], DUPLICATES, []),
    "different namespaces": (
        [*NODES, pod("p", "a"), pod("q", "a", namespace="other")],
        DUPLICATES,
        [],
    ),
    "a kind of owners is excluded": (
        [*NODES, *_pods(3, "a", **OTHER_OWNER)],
        RemoveDuplicates(exclude_owner_kinds=frozenset({"Job"})),
        [],
    ),
    "namespaces are excluded": (
        [*NODES, *_pods(3, "a")],
        RemoveDuplicates(namespaces=Choice(exclude=frozenset({"shop"}))),
        [],
    ),
    "pods of two owners go once": (
        [*NODES, *_pods(3, "a", **BOTH_OWNERS)],
        DUPLICATES,
        ["p1", "p2"],
    ),
    "protected pods are not counted": (
        [*NODES, *_pods(2, "a"), *_pods(2, "a", "q", spec={"volumes": [{"emptyDir": {}}]})],
        DUPLICATES,
        ["p1"],
    ),
    "a taint leaves one node to go to": (
        [node("a"), node("b", taints=[taint("k")]), *_pods(3, "a")],
        DUPLICATES,
        [],
    ),
    "a node selector leaves one": (
        [
            node("a", labels={"pool": "x"}),
            node("b"),
            *_pods(3, "a", spec={"nodeSelector": {"pool": "x"}}),
        ],
        DUPLICATES,
        [],
    ),
    "cordons and room are ignored": (
        [node("a"), node("b", cordoned=True, offer={"pods": "0"}), *_pods(2, "a")],
        DUPLICATES,
        ["p1"],
    ),
}


@pytest.mark.parametrize("name", SPREAD_EVENLY)
def test_remove_duplicates(name: str) -> None:
    objects, args, goes = SPREAD_EVENLY[name]

    assert evicted(objects, args) == goes


# RemovePodsViolatingTopologySpreadConstraint

ZONES = [node(f"n{zone}", labels={"zone": str(zone), "pool": "x"}) for zone in range(3)]
SPREAD = RemovePodsViolatingTopologySpreadConstraint()


def _spread(**rule: Any) -> dict[str, Any]:
    """Return a pod's parts: it has to be spread over zones."""
    written = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **rule,
    }
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"topologySpreadConstraints": [written]},
    }


def _also(parts: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**parts, "spec": {**parts["spec"], **spec}}


def _over(*counts: int, parts: dict[str, Any] | None = None) -> Objects:
    """Return so many pods in each zone."""
    spread = _spread() if parts is None else parts
    return [
        each
        for zone, count in enumerate(counts)
        for each in _pods(count, f"n{zone}", "abc"[zone], **spread)
    ]


SOFT = _spread(whenUnsatisfiable="ScheduleAnyway")
PLAIN = {"metadata": {"labels": {"app": "web"}}}
HONORS = _also(_spread(nodeTaintsPolicy="Honor"))
KEYED = {
    **_spread(labelSelector={}, matchLabelKeys=["hash"]),
    "metadata": {"labels": {"hash": "1"}},
}
TAINTED_ZONES = [*ZONES[:2], node("n2", labels={"zone": "2"}, taints=[taint("k")])]

SPREADING: dict[str, tuple[Objects, dict[str, Any], dict[str, int]]] = {
    # How many pods leave each zone.
    "even": ([*ZONES, *_over(2, 2, 2)], {}, {}),
    "within the skew": ([*ZONES, *_over(2, 1, 1)], {}, {}),
    "two too many": ([*ZONES, *_over(4, 1, 1)], {}, {"a": 2}),
    "an empty zone": ([*ZONES, *_over(3, 3, 0)], {}, {"a": 1, "b": 1}),
    "a larger skew is allowed": ([*ZONES, *_over(4, 2, 2, parts=_spread(maxSkew=2))], {}, {}),
    "soft constraints do not count": ([*ZONES, *_over(4, 1, 1, parts=SOFT)], {}, {}),
    "unless asked for": (
        [*ZONES, *_over(4, 1, 1, parts=SOFT)],
        {"constraints": frozenset({"ScheduleAnyway"})},
        {"a": 2},
    ),
    "pods without the constraint count, and leave": (
        [*ZONES, pod("x", "n0", **_spread()), *_over(3, 1, 1, parts=PLAIN)],
        {},
        {"x": 1, "a": 1},
    ),
    "other labels do not count": (
        [*ZONES, *_over(2, 2, 2), *_pods(5, "n0", "x", metadata={"labels": {"app": "x"}})],
        {},
        {},
    ),
    "other namespaces do not": (
        [*ZONES, *_over(2, 2, 2), *_pods(5, "n0", "x", namespace="other", **PLAIN)],
        {},
        {},
    ),
    "protected pods are not counted": (
        [*ZONES, *_over(1, 1, 1), *_pods(4, "n0", "x", **_also(_spread(), priority=2 * 10**9))],
        {},
        {},
    ),
    "pods that are being deleted are not": (
        [
            *ZONES,
            *_over(1, 1, 1),
            *_pods(
                4,
                "n0",
                "x",
                **_also(
                    {
                        **_spread(),
                        "metadata": {
                            "labels": {"app": "web"},
                            "deletionTimestamp": "2030-01-31T09:00:00Z",
                        },
                    }
                ),
            ),
        ],
        {},
        {},
    ),
    "a zone that the node selector rules out": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(2, 2, 0, parts=_also(_spread(), nodeSelector={"pool": "x"})),
        ],
        {},
        {},
    ),
    "it counts if affinity is ignored, but nothing fits there": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(
                3,
                3,
                0,
                parts=_also(_spread(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "x"}),
            ),
        ],
        {},
        {},
    ),
    "they leave all the same without topologyBalanceNodeFit": (
        [
            *ZONES[:2],
            node("n2", labels={"zone": "2"}),
            *_over(
                3,
                3,
                0,
                parts=_also(_spread(nodeAffinityPolicy="Ignore"), nodeSelector={"pool": "x"}),
            ),
        ],
        {"topology_balance_node_fit": False},
        {"a": 1, "b": 1},
    ),
    "a tainted zone counts": (
        [*TAINTED_ZONES, *_over(3, 3, 0)],
        {"topology_balance_node_fit": False},
        {"a": 1, "b": 1},
    ),
    "unless taints are honored": ([*TAINTED_ZONES, *_over(3, 3, 0, parts=HONORS)], {}, {}),
    "only pods with equal values of matchLabelKeys count": (
        [
            *ZONES,
            *_over(1, 1, 1, parts=KEYED),
            *_pods(5, "n0", "x", metadata={"labels": {"hash": "2"}}),
        ],
        {},
        {},
    ),
    "a full zone takes nobody": (
        [*ZONES[:2], node("n2", labels={"zone": "2"}, offer={"pods": "0"}), *_over(3, 3, 0)],
        {},
        {},
    ),
    "namespaces that are looked at": (
        [*ZONES, *_over(4, 1, 1)],
        {"namespaces": Choice(exclude=frozenset({"shop"}))},
        {},
    ),
    "labels that are looked at": (
        [*ZONES, *_over(4, 1, 1)],
        {"label_selector": equals({"app": "x"})},
        {},
    ),
    "a single zone": (
        [node("a", labels={"zone": "0"}), node("b"), *_pods(4, "a", **_spread())],
        {},
        {},
    ),
}


@pytest.mark.parametrize("name", SPREADING)
def test_topology_spread(name: str) -> None:
    objects, args, leaves = SPREADING[name]

    names = evicted(objects, RemovePodsViolatingTopologySpreadConstraint(**args))

    assert _count(names) == Counter(leaves)


def test_of_a_zone_those_of_the_highest_priority_leave_before_those_with_node_rules() -> None:
    parts = [
        _also(_spread(), priority=1),
        _also(_spread(), priority=9),
        _also(_spread(), priority=9, nodeSelector={"pool": "x"}),
        _spread(),
    ]
    pods = [pod(f"a{index}", "n0", **each) for index, each in enumerate(parts)]

    assert evicted([*ZONES[:2], *pods], SPREAD) == ["a0", "a1"]


def test_of_a_zone_those_leave_that_fit_where_there_are_fewer() -> None:
    small = [node("n0", labels={"zone": "0"}), node("n1", labels={"zone": "1"}, offer={"cpu": "1"})]
    pods = [
        pod(f"a{index}", "n0", requests={"cpu": cpu}, **_spread())
        for index, cpu in enumerate(["1", "2", "1", "2"])
    ]

    assert evicted([*small, *pods], SPREAD) == ["a0", "a2"]


# LowNodeUtilization

HALF = {"cpu": "500m"}


def _low(**args: Any) -> LowNodeUtilization:
    thresholds = {"thresholds": {"cpu": 20.0}, "target_thresholds": {"cpu": 50.0}}
    return LowNodeUtilization(**{**thresholds, **args})


BUSY = _pods(6, "a", requests=HALF)  # 3 of 4 CPUs.

UTILIZATION: dict[str, tuple[Objects, LowNodeUtilization, dict[str, int]]] = {
    "down to the target": ([*NODES, *BUSY], _low(), {"p": 2}),
    "at the target": ([*NODES, *BUSY[:4]], _low(), {}),
    "no node is below": (
        [*NODES, *BUSY, *_pods(2, "b", "q", requests=HALF), *_pods(2, "c", "r", requests=HALF)],
        _low(),
        {},
    ),
    "exactly at the threshold is below": (
        [*NODES[:2], *BUSY, pod("q", "b", requests={"cpu": "800m"})],
        _low(),
        {"p": 2},
    ),
    "all resources have to be below": (
        [*NODES[:2], *BUSY, pod("q", "b", requests={"memory": "4Gi"})],
        _low(thresholds={"cpu": 20, "memory": 20}, target_thresholds={"cpu": 50, "memory": 60}),
        {},
    ),
    "any resource above is too much": (
        [*NODES[:2], *_pods(6, "a", requests={"memory": "1Gi"})],
        _low(thresholds={"cpu": 20, "memory": 20}, target_thresholds={"cpu": 50, "memory": 50}),
        {"p": 2},
    ),
    "not more than the others may take": (
        [*NODES[:2], *_pods(8, "a", requests=HALF), pod("q", "b", requests={"cpu": "800m"})],
        _low(thresholds={"cpu": 20}, target_thresholds={"cpu": 30}),
        {"p": 1},
    ),
    "a cordoned node takes nothing": ([node("a"), node("b", cordoned=True), *BUSY], _low(), {}),
    "as few as numberOfNodes are below": ([*NODES, *BUSY], _low(number_of_nodes=2), {}),
    "more than numberOfNodes": ([*NODES, *BUSY], _low(number_of_nodes=1), {"p": 2}),
    "all are below": ([*NODES, *BUSY[:1]], _low(), {}),
    "namespaces are excluded, and counted": (
        [*NODES, *BUSY],
        _low(exclude_namespaces=frozenset({"shop"})),
        {},
    ),
    "a bound for each node": ([*NODES, *BUSY], _low(most_per_node=1), {"p": 1}),
    "no toleration for any that takes": (
        [node("a"), node("b", taints=[taint("k", effect="PreferNoSchedule")]), *BUSY],
        _low(),
        {},
    ),
    "fewer tolerations than taints": (
        [
            node("a"),
            node("b", taints=[taint("k"), taint("l")]),
            *_pods(6, "a", requests=HALF, spec={"tolerations": [{"operator": "Exists"}]}),
        ],
        _low(),
        {},
    ),
    "deviations from the mean": (
        [*NODES, *BUSY],  # 75, 0 and 0 percent: 25 on average.
        _low(
            thresholds={"cpu": 10.0}, target_thresholds={"cpu": 10.0}, use_deviation_thresholds=True
        ),
        {"p": 4},
    ),
    "capacity where nothing is allocatable": (
        [node("a", allocatable={}), *NODES[1:], *BUSY],
        _low(),
        {"p": 2},
    ),
    "no pods are left": (
        [node("a"), node("b", offer={"pods": "0"}), *BUSY],
        _low(),
        {},
    ),
}


@pytest.mark.parametrize("name", UTILIZATION)
def test_low_node_utilization(name: str) -> None:
    objects, args, leaves = UTILIZATION[name]

    assert _count(evicted(objects, args)) == Counter(leaves)


def test_the_fullest_node_is_relieved_first_and_its_least_important_pods_leave() -> None:
    busy = [
        pod("a-low", "a", requests={"cpu": "1500m"}, spec={"priority": 1}),
        pod("a-high", "a", requests={"cpu": "1500m"}, spec={"priority": 9}),
        pod("b-none", "b", requests={"cpu": "2000m"}),
        pod("b-some", "b", requests={"cpu": "2000m"}, spec={"priority": 0}),
        pod(
            "b-mild",
            "b",
            requests={"cpu": "0"},
            metadata={"annotations": {PREFER_NO_EVICTION: ""}},
            status={"qosClass": "Burstable"},
        ),
    ]

    assert evicted([*NODES, node("d"), *busy], _low()) == ["b-none", "a-low"]


def test_the_room_of_the_others_is_one_sum_and_the_last_pod_may_exceed_it() -> None:
    nodes = [node("a"), *(node(f"s{i}", offer={"cpu": "1"}) for i in range(2))]
    large = [pod(f"p{i}", "a", requests={"cpu": "1200m"}) for i in range(3)]

    assert evicted([*nodes, *large], _low()) == ["p0"]


@pytest.mark.parametrize("limit", ["total", "per_node", "per_namespace"])
def test_limits_end_what_leaves(limit: str) -> None:
    names = evicted([*NODES, *BUSY], _low(), limits=EvictionLimits(**{limit: 1}))

    assert len(names) == 1


def test_with_node_fit_only_pods_leave_that_fit() -> None:
    assert evicted([node("a"), node("b", offer={"cpu": "400m"}), *BUSY], _low(), evictor=FIT) == []


def _measured(**usage: str) -> Objects:
    return [
        {"kind": "NodeMetrics", "metadata": {"name": name}, "usage": {"cpu": cpu, "memory": "1Gi"}}
        for name, cpu in usage.items()
    ]


def _pod_metrics(names: list[str], cpu: str) -> Objects:
    return [
        {
            "kind": "PodMetrics",
            "metadata": {"name": name, "namespace": "shop"},
            "containers": [{"usage": {"cpu": cpu, "memory": "1Mi"}}],
        }
        for name in names
    ]


REAL = _low(usage=UsageSource.KUBERNETES)


def test_what_is_measured_counts_instead_of_requests() -> None:
    idle = _pods(4, "a")
    load = _measured(a="3", b="100m", c="100m")

    assert evicted([*NODES, *idle, *load, *_pod_metrics(["p1", "p3"], "600m")], REAL) == [
        "p1",
        "p3",
    ]


def test_a_node_without_metrics_fails_the_plugin() -> None:
    done = outcome([*NODES, *BUSY, *_measured(a="3", b="0")], REAL)

    assert not done.evictions
    assert "unable to find node 'c' in the collected metrics" in done.notes[0]


def test_a_resource_that_is_not_measured_fails_the_plugin() -> None:
    args = _low(
        thresholds={"example.com/gpu": 20},
        target_thresholds={"example.com/gpu": 50},
        usage=UsageSource.KUBERNETES,
    )

    done = outcome([*NODES, *BUSY, *_measured(a="3", b="0", c="0")], args)

    assert "do not have 'example.com/gpu'" in done.notes[0]


# HighNodeUtilization


def _high(**args: Any) -> HighNodeUtilization:
    return HighNodeUtilization(**{"thresholds": {"cpu": 20.0}, **args})


FEW = [pod("p0", "a", requests={"cpu": "100m"}), pod("p1", "a"), pod("p2", "a")]
CARRIES = _pods(4, "b", "q", requests=HALF)

EMPTYING: dict[str, tuple[Objects, HighNodeUtilization, list[str]]] = {
    "the least used node is emptied": ([*NODES[:2], *FEW, *CARRIES], _high(), ["p1", "p2", "p0"]),
    "all are below": ([*NODES[:2], *FEW], _high(), []),
    "none is below": ([*NODES[:2], *CARRIES, *_pods(4, "a", requests=HALF)], _high(), []),
    "the others are cordoned": ([node("a"), node("b", cordoned=True), *FEW, *CARRIES], _high(), []),
    "a cordoned node is emptied": (
        [node("a", cordoned=True), node("b"), *FEW, *CARRIES],
        _high(),
        ["p1", "p2", "p0"],
    ),
    "as few as numberOfNodes": ([*NODES[:2], *FEW, *CARRIES], _high(number_of_nodes=1), []),
    "only pods that request what has a threshold": (
        [*NODES[:2], *FEW, *CARRIES],
        _high(only_thresholding_resources=True),
        ["p0"],
    ),
    "namespaces are excluded": (
        [*NODES[:2], *FEW, *CARRIES],
        _high(exclude_namespaces=frozenset({"shop"})),
        [],
    ),
    "not more than there is room for": (
        [node("a"), node("b", offer={"pods": "6"}), *FEW, *CARRIES],
        _high(),
        ["p1", "p2"],
    ),
}


@pytest.mark.parametrize("name", EMPTYING)
def test_high_node_utilization(name: str) -> None:
    objects, args, goes = EMPTYING[name]

    assert evicted(objects, args) == goes
