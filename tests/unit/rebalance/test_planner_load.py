"""A plan of LowNodeUtilization: shares of nodes, gains and skipped nodes."""

from dataclasses import replace

import msgspec

from reserver.rebalance import upstream
from reserver.rebalance.arguments.utilization import (
    METRIC,
    HighNodeUtilization,
    LowNodeUtilization,
    MetricsUtilization,
    Query,
)
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.planner import decide
from reserver.rebalance.readings import Average
from reserver.rebalance.round_input import RoundInput
from tests.builders import NOW, pod
from tests.unit.rebalance.planned import assert_at_rest, cluster_of, host, planned, policy
from tests.unit.rebalance.scenes import moves

LOW = LowNodeUtilization(thresholds={"memory": 25.0}, target_thresholds={"memory": 70.0})


def test_descheduler_1695_a_pod_that_overloads_any_node_stays() -> None:
    nodes = [host(each, memory="100Gi") for each in "abc"]
    big = pod("big", node="a", memory="80Gi")
    small = pod("small", node="a", memory="10Gi")
    cluster = cluster_of(*nodes, big, small)
    plan = planned(cluster, LOW)
    assert [move.pod.name for move in plan.moves] == ["small"]
    assert "big" in {kept.pod.name for kept in plan.kept}
    assert_at_rest(plan, cluster, LOW)


def test_no_node_becomes_one_that_pods_leave() -> None:
    nodes = [host(each, memory="100Gi") for each in "abc"]
    pods = [pod(f"p{n}", node="a", memory="15Gi") for n in range(6)]
    cluster = cluster_of(*nodes, *pods, pod("q", node="b", memory="20Gi"))
    plan = planned(cluster, LOW)
    used = {use.node: use.after.get("memory", 0) / 2**30 for use in plan.nodes}
    assert max(used.values()) <= 70
    assert len(plan.moves) == 2
    assert_at_rest(plan, cluster, LOW)


def test_a_node_exactly_at_the_threshold_takes_pods() -> None:
    nodes = [host(each, memory="100Gi") for each in "ab"]
    pods = [pod(f"p{n}", node="a", memory="15Gi") for n in range(6)]
    plan = planned(cluster_of(*nodes, *pods, pod("q", node="b", memory="25Gi")), LOW)
    assert {move.target for move in plan.moves} == {"b"}


def test_a_node_without_metrics_is_skipped_and_named() -> None:
    nodes = [host(each, memory="100Gi") for each in "abc"]
    pods = [pod(f"p{n}", node="a", memory="1Gi") for n in range(6)]
    usage = {"a": {"memory": 90 * 2**30}, "b": {"memory": 2**30}}
    cluster = replace(cluster_of(*nodes, *pods), node_usage=usage)
    measured = MetricsUtilization(source="KubernetesMetrics")
    plan = planned(cluster, msgspec.structs.replace(LOW, metrics_utilization=measured))
    assert plan.notes == ("LowNodeUtilization skips c: it has no metrics",)
    assert {move.target for move in plan.moves} == {"b"}


def by_shares(**percent: float) -> RoundInput:
    """Return a round of three pods on node a, with used shares from Prometheus."""
    args = LowNodeUtilization(
        thresholds={METRIC: 20.0},
        target_thresholds={METRIC: 50.0},
        metrics_utilization=MetricsUtilization(source="Prometheus", prometheus=Query(query="q")),
    )
    source = source_of(args)
    assert source is not None
    nodes = {name: Average({METRIC: share}, NOW, NOW, 0) for name, share in percent.items()}
    cluster = cluster_of(*map(host, percent), *(pod(f"p{n}", node="a") for n in range(3)))
    return RoundInput(
        policy=policy(args),
        cluster=cluster,
        loads={source: SmoothedLoad(nodes=nodes)},
        rounds={},
        now=NOW,
    )


def test_shares_that_prometheus_tells_count_in_both_ways_of_judging() -> None:
    given = by_shares(a=90.0, b=10.0)
    assert [move.target for move in decide(given).plan.moves] == ["b"]
    assert len(upstream.decide(given).plan.moves) == 1


def test_upstream_cuts_decimal_places_of_shares_off() -> None:
    given = by_shares(a=90.0, b=20.9)
    assert not decide(given).plan.moves
    assert len(upstream.decide(given).plan.moves) == 1


def test_a_low_node_is_emptied_whole_or_not_at_all() -> None:
    high = HighNodeUtilization(thresholds={"cpu": 30.0})
    nodes = [host(each, cpu="10") for each in "ab"]
    busy = pod("busy", node="a", cpu="7")
    two = [pod("p", node="b", cpu="1"), pod("q", node="b", cpu="1")]
    plan = planned(cluster_of(*nodes, busy, *two), high)
    assert sorted(moves(plan)) == [("p", "b", "a"), ("q", "b", "a")]
    plan = planned(cluster_of(*nodes, busy, pod("busier", node="a", cpu="2"), *two), high)
    assert not plan.moves
    assert [kept.pod.name for kept in plan.kept] == ["p", "q"]
    assert "not all pods of b find room" in plan.kept[0].why


def unequal() -> RoundInput:
    """Return a round for memory: a at 90 %, b at 10 %; pods of 5 % and of 30 %."""
    nodes = (host("a", memory="100Gi"), host("b", memory="100Gi"))
    small = [pod(f"small-{n}", node="a", memory="5Gi") for n in range(6)]
    large = [pod(f"w-{n}", node="a", memory="30Gi") for n in range(2)]
    other = pod("other", node="b", memory="10Gi")
    cluster = cluster_of(*nodes, *small, *large, other)
    return RoundInput(policy=policy(LOW), cluster=cluster, loads={}, rounds={}, now=NOW)


def test_a_move_between_two_nodes_says_what_it_gains_and_is_left_out_below_the_least() -> None:
    plan = decide(unequal()).plan
    assert [(move.pod.name, move.gain) for move in plan.moves] == [
        (f"small-{number}", 5.0) for number in range(4)
    ]
    plan = decide(replace(unequal(), least_gain=6.0)).plan
    assert [(move.pod.name, move.gain) for move in plan.moves] == [("w-0", 30.0)]
    assert {kept.pod.name for kept in plan.kept} >= {"small-0", "small-1"}
    assert not decide(replace(unequal(), least_gain=31.0)).plan.moves


def test_what_cannot_be_compared_is_not_left_out() -> None:
    given = replace(by_shares(a=90.0, b=10.0), least_gain=50.0)
    assert [(move.target, move.gain) for move in decide(given).plan.moves] == [("b", None)]
