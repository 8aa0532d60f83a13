"""Chains, cycles, one pod against several, and pods that are in the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance import exchanges
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.ordering import Order, order
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.policy import EvictionLimits
from tests.builders import pod
from tests.unit.rebalance.planned import assert_at_rest, cluster_of, host, planned
from tests.unit.rebalance.scenes import moves
from tests.unit.rebalance.test_planner import DUPLICATES, PREFERRED, TAINTS, preferring

Things = list[Node | Pod | ListedPod]


def ring(length: int, name: str = "", cpu: str = "2") -> Things:
    """Return pods that fill their nodes and each prefer the node of the next pod."""
    things: Things = [host(f"{name}{n}", role=f"{name}{n}", cpu="2") for n in range(length)]
    things += (
        preferring(f"p-{name}{n}", f"{name}{n}", f"{name}{(n + 1) % length}", cpu)
        for n in range(length)
    )
    return things


@pytest.mark.parametrize("length", [2, 3, 4, 5, 20])
def test_a_cycle_of_any_length_goes_through_one_free_place(length: int) -> None:
    cluster = cluster_of(*ring(length), host("free", cpu="2"))
    plan = planned(cluster, PREFERRED)
    assert len(plan.moves) == length + 1
    assert not plan.kept
    assert_at_rest(plan, cluster, PREFERRED)
    assert not planned(cluster_of(*ring(length)), PREFERRED).moves  # Without that place.


def test_cycles_go_through_a_free_place_one_after_the_other() -> None:
    rings = [each for name in "abcd" for each in ring(3, name)]
    cluster = cluster_of(*rings, host("free", cpu="2"))
    plan = planned(cluster, PREFERRED)
    assert len(plan.moves) == 16
    assert_at_rest(plan, cluster, PREFERRED)


def test_a_chain_is_one_plan_whichever_pod_comes_first() -> None:
    for first, second in ("pq", "qp"):
        cluster = cluster_of(
            *(host(name, role=name, cpu="2") for name in "abc"),
            preferring(first, "a", "b", "2"),
            preferring(second, "b", "c", "2"),
        )
        plan = planned(cluster, PREFERRED)
        assert moves(plan) == [(second, "b", "c"), (first, "a", "b")]
        assert_at_rest(plan, cluster, PREFERRED)


def test_one_large_pod_changes_places_with_two_small_ones() -> None:
    cluster = cluster_of(
        host("x", role="x", cpu="4"),
        host("y", role="y", cpu="4"),
        host("free", cpu="4"),
        preferring("large", "x", "y", "4"),
        preferring("small0", "y", "x", "2"),
        preferring("small1", "y", "x", "2"),
    )
    plan = planned(cluster, PREFERRED)
    assert len(plan.moves) in {4, 5}
    assert not plan.kept
    assert_at_rest(plan, cluster, PREFERRED)


def in_the_way(*more: Node) -> Things:
    """Return a pod that does not tolerate its node, and a pod on the only other node with room."""
    taint = Taint("maintenance", "", "NoSchedule")
    nodes = [host("old", taint, cpu="4"), host("a", cpu="4"), host("b", cpu="1"), *more]
    return [*nodes, pod("large", node="old", cpu="4"), pod("other", node="a", cpu="1")]


def test_a_pod_that_is_in_the_way_goes_elsewhere() -> None:
    cluster = cluster_of(*in_the_way())
    plan = planned(cluster, TAINTS)
    assert moves(plan) == [("other", "a", "b"), ("large", "old", "a")]
    assert plan.moves[0].reason == "makes way for shop/large"
    assert_at_rest(plan, cluster, TAINTS)


def test_a_pod_in_the_way_hears_no_name_of_another_namespace() -> None:
    *others, other = in_the_way()
    assert isinstance(other, Pod)
    moved = replace(other, name=PodName("bank", "other"))
    plan = planned(cluster_of(*others, moved), TAINTS)
    assert plan.moves[0].reason == "makes way for a pod of another namespace"


def test_a_pod_in_the_way_stays_where_a_strategy_has_a_view_on_its_place() -> None:
    assert not planned(cluster_of(*in_the_way()), TAINTS, DUPLICATES).moves


def test_a_pod_in_the_way_goes_to_no_node_with_a_soft_taint() -> None:
    things = in_the_way()
    things[2] = host("b", Taint("spot", "", "PreferNoSchedule"), cpu="1")
    assert not planned(cluster_of(*things), TAINTS).moves


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (EvictionLimits(total=3), 0),
        (EvictionLimits(total=4), 4),
        (EvictionLimits(per_node=1), 0),
        (EvictionLimits(per_node=2), 4),
        (EvictionLimits(per_namespace=3), 0),
    ],
)
def test_a_cycle_is_made_whole_or_not_at_all(limits: EvictionLimits, count: int) -> None:
    cluster = cluster_of(*ring(3), host("free", cpu="2"))
    assert len(planned(cluster, PREFERRED, limits=limits).moves) == count


def test_a_plan_with_too_many_ways_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MOST_TRIES", 3)
    plan = planned(cluster_of(*ring(8)), PREFERRED)
    assert not plan.moves  # There is no free place to go through.
    assert sum("ways to exchange places" in note for note in plan.notes) == 1


def test_only_pods_that_leave_each_other_room_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counting(planned: PlanningSnapshot, goals: Mapping[int, int]) -> Order:
        tried.append(goals)
        return order(planned, goals)

    monkeypatch.setattr(exchanges, "order", counting)
    nodes = [host(f"{role}{n:02}", role=role, cpu="2") for role in "xy" for n in range(20)]
    small = [preferring(f"p{n:02}", f"x{n:02}", "y", "1") for n in range(20)]
    large = [preferring(f"q{n:02}", f"y{n:02}", "x", "2") for n in range(20)]
    filling = [pod(f"f{n:02}", node=f"x{n:02}", cpu="1") for n in range(20)]
    full = cluster_of(*nodes, *small, *large, *filling)
    assert not planned(full, PREFERRED, DUPLICATES).moves
    assert not tried  # Of 780 pairs.
    planned(cluster_of(*nodes, *small, *large), PREFERRED, DUPLICATES)
    assert 0 < len(tried) <= exchanges.MOST_TRIES
