"""A cycle: the order of its plugins, its limits, and what an error costs."""

from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import RemovePodsViolatingNodeTaints
from reserver.rebalance.arguments.recycling import PodLifeTime, RemoveFailedPods
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.strategies import table
from reserver.rebalance.upstream import plan
from tests.unit.rebalance.build import NOW, cluster_of, evicted, node, outcome, pod

ALL_PODS = PodLifeTime(states=frozenset({"Running"}))
NODES = [node("a"), node("b")]
PODS = [
    pod("p0", "a"),
    pod("p1", "a"),
    pod("p2", "a", namespace="other"),
    pod("p3", "b"),
]


def _some(value: str) -> PodLifeTime:
    return PodLifeTime(states=frozenset({"Running"}), label_selector=equals({"app": value}))


@pytest.mark.parametrize(
    ("limits", "goes"),
    [
        ({}, ["p2", "p0", "p1", "p3"]),
        ({"total": 0}, []),
        ({"total": 2}, ["p2", "p0"]),
        ({"per_node": 2}, ["p2", "p0", "p3"]),
        ({"per_node": 0}, []),
        ({"per_namespace": 1}, ["p2", "p0"]),
        ({"per_namespace": 2, "per_node": 2}, ["p2", "p0", "p3"]),
    ],
)
def test_limits(limits: dict[str, int], goes: list[str]) -> None:
    names = evicted([*NODES, *PODS], ALL_PODS, limits=EvictionLimits(**limits))

    assert sorted(names) == sorted(goes)


def test_limits_hold_over_all_profiles_and_plugins() -> None:
    profiles = tuple(Profile(name=name, deschedule=(_some(name),)) for name in ("first", "second"))
    pods = [
        pod(f"{app}-{i}", "a", metadata={"labels": {"app": app}})
        for app in ("first", "second")
        for i in range(2)
    ]

    done = plan(
        cluster_of(*NODES, *pods),
        DeschedulerPolicy(profiles=profiles, limits=EvictionLimits(total=3)),
        NOW,
    )

    assert [(e.profile, e.pod.name) for e in done.moves] == [
        ("first", "first-0"),
        ("first", "first-1"),
        ("second", "second-0"),
    ]
    assert [(r.pod.name, r.why) for r in done.kept] == [
        ("second-1", "maximum number of evicted pods per a descheduling cycle reached")
    ]


def test_all_profiles_deschedule_before_any_balances() -> None:
    profiles = (
        Profile(name="one", deschedule=(_some("1"),), balance=(_some("2"),)),
        Profile(name="two", deschedule=(_some("3"),), balance=(_some("4"),)),
    )
    pods = [pod(f"p{i}", "a", metadata={"labels": {"app": str(i)}}) for i in range(1, 5)]

    done = plan(cluster_of(*NODES, *pods), DeschedulerPolicy(profiles=profiles), NOW)

    assert [e.pod.name for e in done.moves] == ["p1", "p3", "p2", "p4"]


def test_each_profile_has_its_own_evictor() -> None:
    profiles = (
        Profile(name="one", evictor=DefaultEvictor(priority_threshold=5), deschedule=(ALL_PODS,)),
        Profile(name="two", evictor=DefaultEvictor(priority_threshold=9), deschedule=(ALL_PODS,)),
    )
    pods = [pod(f"p{i}", "a", spec={"priority": i}) for i in (4, 8, 9)]

    done = plan(cluster_of(*NODES, *pods), DeschedulerPolicy(profiles=profiles), NOW)

    assert [(e.profile, e.pod.name) for e in done.moves] == [("one", "p4"), ("two", "p8")]


def test_what_is_evicted_is_gone_for_the_next_plugin() -> None:
    assert evicted([*NODES, pod("p", "a")], ALL_PODS, ALL_PODS) == ["p"]


def test_a_pod_without_uid_stays_and_costs_nothing() -> None:
    done = outcome(
        [*NODES, pod("p", "a", uid=""), pod("q", "a")], ALL_PODS, limits=EvictionLimits(total=1)
    )

    assert [e.pod.name for e in done.moves] == ["q"]
    assert [r.why for r in done.kept] == ["it has no UID"]


@pytest.mark.parametrize(
    "nodes",
    [[], [node("a")], [node("a"), node("b", conditions=[{"type": "Ready", "status": "False"}])]],
)
def test_a_cycle_takes_two_ready_nodes(nodes: list[dict[str, Any]]) -> None:
    done = outcome([*nodes, pod("p", "a")], ALL_PODS)

    assert not done.moves
    assert "the cycle is skipped" in done.notes[0]


def test_an_exception_costs_the_plugin_that_raised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Plan:
        raise ValueError("no such luck")

    monkeypatch.setitem(table.UPSTREAM, RemoveFailedPods, broken)

    done = outcome([*NODES, pod("p", "a")], RemoveFailedPods(), ALL_PODS)

    assert [e.pod.name for e in done.moves] == ["p"]
    assert done.notes == ("test/RemoveFailedPods failed: no such luck",)


def test_the_outcome_does_not_depend_on_the_order_of_a_dump() -> None:
    plugins = (RemovePodsViolatingNodeTaints(), ALL_PODS)

    forth = evicted([*NODES, *PODS], *plugins)
    back = evicted([*PODS[::-1], *NODES[::-1]], *plugins)

    assert forth == back
