"""The strategies that judge a pod by itself: state in, evictions out, for each of their options."""

from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.base import ALL, Choice
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.arguments.recycling import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.policy import Arguments
from tests.unit.rebalance.build import evicted, node, outcome, pod, taint
from tests.unit.rebalance.cases import (
    FAILED,
    NODES,
    ON_T,
    TAINTED,
    created,
    keeps_from,
    needs,
    restarted,
)
from tests.unit.rebalance.placement_cases import AFFINITY, ANTI_AFFINITY, TAINTS
from tests.unit.rebalance.recycling_cases import FAILED_PODS, LIFE_TIME, RESTARTS

CASES = {
    f"{strategy}: {name}": case
    for strategy, cases in {
        "PodLifeTime": LIFE_TIME,
        "RemoveFailedPods": FAILED_PODS,
        "TooManyRestarts": RESTARTS,
        "NodeTaints": TAINTS,
        "NodeAffinity": AFFINITY,
        "InterPodAntiAffinity": ANTI_AFFINITY,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_strategy_evicts(name: str) -> None:
    case = CASES[name]
    present = {each["metadata"]["name"] for each in case.objects if each["kind"] == "Node"}
    more = [each for each in NODES if each["metadata"]["name"] not in present]

    assert evicted([*more, *case.objects], case.args) == case.goes


WRONG: dict[type[Any], tuple[dict[str, Any], dict[str, Any]]] = {
    # A pod that the strategy evicts, and its arguments but for what chooses pods.
    PodLifeTime: (created("08:00:00"), {"max_pod_life_time_seconds": 0}),
    RemoveFailedPods: (FAILED, {}),
    RemovePodsHavingTooManyRestarts: (restarted(5), {"pod_restart_threshold": 5}),
    RemovePodsViolatingNodeTaints: ({}, {}),
    RemovePodsViolatingNodeAffinity: (
        needs("2"),
        {"node_affinity_type": (NodeAffinityType.REQUIRED,)},
    ),
    RemovePodsViolatingInterPodAntiAffinity: (keeps_from("x"), {}),
}


@pytest.mark.parametrize("strategy", WRONG)
def test_a_strategy_looks_at_its_namespaces_and_labels(strategy: type[Arguments]) -> None:
    parts, args = WRONG[strategy]
    labels = {"metadata": {**parts.get("metadata", {}), "labels": {"app": "x"}}}
    objects = [
        node("z1", labels={"zone": "1"}, taints=[taint("k")]),
        node("z2", labels={"zone": "2"}),
        pod("p", "z1", **{**parts, **labels}),
        pod("q", "z1", namespace="other", **{**parts, **labels}),
        pod("o", "z1", namespace="other", **{**parts, **labels}),
        pod("r", "z1", **{**parts, **labels}),
    ]

    def chosen(**choice: Any) -> set[str]:
        return set(evicted(objects, strategy(**args, **choice)))

    everywhere = chosen()
    shop = chosen(namespaces=Choice(include=frozenset({"shop"})))
    others = chosen(namespaces=Choice(exclude=frozenset({"shop"})))

    assert everywhere == shop | others
    assert shop
    assert shop <= {"p", "r"}
    assert others
    assert others <= {"q", "o"}
    assert chosen(namespaces=ALL, label_selector=equals({"app": "x"})) == everywhere
    assert not chosen(label_selector=equals({"app": "y"}))


@pytest.mark.parametrize("strategy", WRONG)
def test_a_strategy_asks_for_a_fit_elsewhere(strategy: type[Arguments]) -> None:
    parts, args = WRONG[strategy]
    metadata = {**parts.get("metadata", {}), "labels": {"app": "x"}}
    objects = [
        node("z1", labels={"zone": "1"}, taints=[taint("k")]),
        node("z2", labels={"zone": "2"}),
        pod("p", "z1", **{**parts, "metadata": metadata}, requests={"cpu": "5"}),
        pod("r", "z1", **{**parts, "metadata": metadata}, requests={"cpu": "5"}),
    ]

    assert not evicted(objects, strategy(**args), evictor=DefaultEvictor(node_fit=True))


def test_nodes_that_are_not_ready_or_not_selected_are_not_looked_at() -> None:
    nodes = [
        node("a", labels={"pool": "x"}),
        node("b", labels={"pool": "x"}),
        node("c"),
        node("d", labels={"pool": "x"}, conditions=[{"type": "Ready", "status": "False"}]),
    ]
    pods = [pod(f"on-{name}", name) for name in "abcd"]

    names = evicted(
        [*nodes, *pods],
        PodLifeTime(max_pod_life_time_seconds=0),
        node_selector=equals({"pool": "x"}),
    )

    assert names == ["on-a", "on-b"]


def test_an_eviction_says_who_asked_for_it_and_why() -> None:
    (eviction,) = outcome([*NODES, TAINTED, ON_T], RemovePodsViolatingNodeTaints()).moves

    assert (eviction.profile, eviction.strategy) == ("test", "RemovePodsViolatingNodeTaints")
    assert eviction.reason == "it does not tolerate the taint k=v:NoSchedule of t"
