"""LowNodeUtilization and HighNodeUtilization: state in, evictions out, for each option."""

from collections import Counter
from typing import Any

import pytest

from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.utilization import (
    HighNodeUtilization,
    LowNodeUtilization,
    MetricsUtilization,
    NodeLimit,
)
from reserver.rebalance.cluster_state import PREFER_NO_EVICTION
from reserver.rebalance.policy import EvictionLimits
from tests.unit.rebalance.build import Objects, counted, evicted, node, outcome, pod, pods, taint

NODES = [node("a"), node("b"), node("c")]
FIT = DefaultEvictor(node_fit=True)


HALF = {"cpu": "500m"}


def _low(**args: Any) -> LowNodeUtilization:
    thresholds = {"thresholds": {"cpu": 20.0}, "target_thresholds": {"cpu": 50.0}}
    return LowNodeUtilization(**{**thresholds, **args})


BUSY = pods(6, "a", requests=HALF)  # 3 of 4 CPUs.

UTILIZATION: dict[str, tuple[Objects, LowNodeUtilization, dict[str, int]]] = {
    "down to the target": ([*NODES, *BUSY], _low(), {"p": 2}),
    "at the target": ([*NODES, *BUSY[:4]], _low(), {}),
    "no node is below": (
        [*NODES, *BUSY, *pods(2, "b", "q", requests=HALF), *pods(2, "c", "r", requests=HALF)],
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
        [*NODES[:2], *pods(6, "a", requests={"memory": "1Gi"})],
        _low(thresholds={"cpu": 20, "memory": 20}, target_thresholds={"cpu": 50, "memory": 50}),
        {"p": 2},
    ),
    "not more than the others may take": (
        [*NODES[:2], *pods(8, "a", requests=HALF), pod("q", "b", requests={"cpu": "800m"})],
        _low(thresholds={"cpu": 20}, target_thresholds={"cpu": 30}),
        {"p": 1},
    ),
    "a cordoned node takes nothing": ([node("a"), node("b", cordoned=True), *BUSY], _low(), {}),
    "as few as numberOfNodes are below": ([*NODES, *BUSY], _low(number_of_nodes=2), {}),
    "more than numberOfNodes": ([*NODES, *BUSY], _low(number_of_nodes=1), {"p": 2}),
    "all are below": ([*NODES, *BUSY[:1]], _low(), {}),
    "namespaces are excluded, and counted": (
        [*NODES, *BUSY],
        _low(evictable_namespaces=Choice(exclude=frozenset({"shop"}))),
        {},
    ),
    "a bound for each node": ([*NODES, *BUSY], _low(eviction_limits=NodeLimit(node=1)), {"p": 1}),
    "no toleration for any that takes": (
        [node("a"), node("b", taints=[taint("k", effect="PreferNoSchedule")]), *BUSY],
        _low(),
        {},
    ),
    "fewer tolerations than taints": (
        [
            node("a"),
            node("b", taints=[taint("k"), taint("l")]),
            *pods(6, "a", requests=HALF, spec={"tolerations": [{"operator": "Exists"}]}),
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

    assert counted(evicted(objects, args)) == Counter(leaves)


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


REAL = _low(metrics_utilization=MetricsUtilization(source="KubernetesMetrics"))


def test_what_is_measured_counts_instead_of_requests() -> None:
    idle = pods(4, "a")
    load = _measured(a="3", b="100m", c="100m")

    assert evicted([*NODES, *idle, *load, *_pod_metrics(["p1", "p3"], "600m")], REAL) == [
        "p1",
        "p3",
    ]


def test_a_node_without_metrics_fails_the_plugin() -> None:
    done = outcome([*NODES, *BUSY, *_measured(a="3", b="0")], REAL)

    assert not done.moves
    assert "unable to find node 'c' in the collected metrics" in done.notes[0]


def test_a_resource_that_is_not_measured_fails_the_plugin() -> None:
    args = _low(
        thresholds={"example.com/gpu": 20},
        target_thresholds={"example.com/gpu": 50},
        metrics_utilization=MetricsUtilization(source="KubernetesMetrics"),
    )

    done = outcome([*NODES, *BUSY, *_measured(a="3", b="0", c="0")], args)

    assert "do not have 'example.com/gpu'" in done.notes[0]


def _high(**args: Any) -> HighNodeUtilization:
    return HighNodeUtilization(**{"thresholds": {"cpu": 20.0}, **args})


FEW = [pod("p0", "a", requests={"cpu": "100m"}), pod("p1", "a"), pod("p2", "a")]
CARRIES = pods(4, "b", "q", requests=HALF)

EMPTYING: dict[str, tuple[Objects, HighNodeUtilization, list[str]]] = {
    "the least used node is emptied": ([*NODES[:2], *FEW, *CARRIES], _high(), ["p1", "p2", "p0"]),
    "all are below": ([*NODES[:2], *FEW], _high(), []),
    "none is below": ([*NODES[:2], *CARRIES, *pods(4, "a", requests=HALF)], _high(), []),
    "the others are cordoned": ([node("a"), node("b", cordoned=True), *FEW, *CARRIES], _high(), []),
    "a cordoned node is emptied": (
        [node("a", cordoned=True), node("b"), *FEW, *CARRIES],
        _high(),
        ["p1", "p2", "p0"],
    ),
    "as few as numberOfNodes": ([*NODES[:2], *FEW, *CARRIES], _high(number_of_nodes=1), []),
    "only pods that request what has a threshold": (
        [*NODES[:2], *FEW, *CARRIES],
        _high(eviction_modes=("OnlyThresholdingResources",)),
        ["p0"],
    ),
    "namespaces are excluded": (
        [*NODES[:2], *FEW, *CARRIES],
        _high(evictable_namespaces=Choice(exclude=frozenset({"shop"}))),
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
