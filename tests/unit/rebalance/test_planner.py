"""A policy judged as one plan, on what users of the descheduler have complained of."""

import random
from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from reserver.cluster.budgets import Budget
from reserver.cluster.constraints import Constraints, NodeTerm, PodTerm, Spread, Taint
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance import upstream
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.utilization import (
    HighNodeUtilization,
    LowNodeUtilization,
    MetricsUtilization,
    Query,
)
from reserver.rebalance.capacity import NOTHING_HELD, Held
from reserver.rebalance.cluster_state import (
    ClusterState,
    ListedNode,
    ListedPod,
    Owner,
    Preference,
    SpreadRule,
)
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.plan import Plan
from reserver.rebalance.planner import decide
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.readings import Average
from reserver.rebalance.round_input import RoundInput
from reserver.rebalance.usage import METRIC
from tests.builders import NAMESPACE, NOW, node, pod
from tests.unit.rebalance.scenes import assert_feasible, budget, moves

HOST = "kubernetes.io/hostname"
HARD = "DoNotSchedule"
NO_LIMITS = EvictionLimits()
PREFERRED = RemovePodsViolatingNodeAffinity(node_affinity_type=(NodeAffinityType.PREFERRED,))
TAINTS = RemovePodsViolatingNodeTaints()
SPREAD = RemovePodsViolatingTopologySpreadConstraint()
LOW = LowNodeUtilization(thresholds={"memory": 25.0}, target_thresholds={"memory": 70.0})
DUPLICATES = RemoveDuplicates()


def host(name: str, *taints: Taint, **allocatable: str) -> Node:
    labels = {HOST: name}
    labels |= {key: allocatable.pop(key) for key in ("rack", "role") if key in allocatable}
    return node(name, labels=labels, taints=taints, **allocatable)


OWNER = Owner("ReplicaSet", "rs", "rs-uid", is_controller=True)


def listed(each: Pod | ListedPod) -> ListedPod:
    found = each if isinstance(each, ListedPod) else ListedPod(pod=each)
    if found.owners:
        return found
    return msgspec.structs.replace(found, owners=(OWNER,), images=(found.name.name,))


def cluster_of(*things: Node | Pod | ListedPod, budgets: tuple[Budget, ...] = ()) -> ClusterState:
    nodes = [each for each in things if isinstance(each, Node)]
    pods = [listed(each) for each in things if not isinstance(each, Node)]
    return ClusterState(
        nodes={each.name: ListedNode(node=each, taints=each.taints) for each in nodes},
        pods=tuple(sorted(pods, key=lambda each: each.name)),
        budgets=budgets,
    )


def policy(*args: Arguments, limits: EvictionLimits = NO_LIMITS) -> DeschedulerPolicy:
    return DeschedulerPolicy(profiles=(Profile(name="default", balance=args),), limits=limits)


def planned(
    cluster: ClusterState,
    *args: Arguments,
    limits: EvictionLimits = NO_LIMITS,
    held: Held = NOTHING_HELD,
) -> Plan:
    rules = policy(*args, limits=limits)
    given = RoundInput(policy=rules, cluster=cluster, loads={}, rounds={}, now=NOW)
    plan = decide(given, held).plan
    nodes = [each.node for each in cluster.nodes.values()]
    assert_feasible(plan, *nodes, *(each.pod for each in cluster.pods))
    return plan


def after(plan: Plan, cluster: ClusterState) -> ClusterState:
    """Return the cluster once all moves are made."""
    goes = {move.pod: move.target for move in plan.moves}
    pods = (
        msgspec.structs.replace(each, pod=replace(each.pod, node=goes.get(each.name) or each.node))
        for each in cluster.pods
    )
    return replace(cluster, pods=tuple(pods))


def assert_at_rest(plan: Plan, cluster: ClusterState, *args: Arguments) -> None:
    again = planned(after(plan, cluster), *args)
    assert not {move.pod for move in again.moves} & {move.pod for move in plan.moves}


def on(cluster: ClusterState) -> Counter[str]:
    return Counter(each.node for each in cluster.pods)


def spread_pod(name: str, at: str, *keys: str, hard: bool = True) -> ListedPod:
    web = equals({"app": "web"})
    spreads = tuple(Spread(topology_key=key, selector=web) for key in keys)
    constraints = Constraints(spread=spreads if hard else ())
    made = pod(name, node=at, cpu="1", labels={"app": "web"}, constraints=constraints)
    when = HARD if hard else "ScheduleAnyway"
    return ListedPod(pod=made, spreads=tuple(SpreadRule(each, when) for each in spreads))


@pytest.mark.parametrize("hard", [True, False])
def test_descheduler_1535_sixteen_moves_for_a_rack_that_came_back(*, hard: bool) -> None:
    """Upstream evicts 26: it solves the constraint of racks and that of nodes one by one."""
    counts = [6, 6, 5, 4, 6, 5, 5, 5, 0, 0, 0, 0, 6, 6, 5, 5]
    nodes = [host(f"n{n:02}", rack=f"rack{n // 4}", cpu="16") for n in range(16)]
    pods = [
        spread_pod(f"p{n:02}-{index}", f"n{n:02}", "rack", HOST, hard=hard)
        for n, count in enumerate(counts)
        for index in range(count)
    ]
    cluster = cluster_of(*nodes, *pods)
    args = msgspec.structs.replace(SPREAD, constraints=frozenset({HARD, "ScheduleAnyway"}))
    plan = planned(cluster, args)
    assert len(plan.moves) == 16
    assert set(on(after(plan, cluster)).values()) == {4}
    assert_at_rest(plan, cluster, args)


def preferring(name: str, at: str, role: str, cpu: str) -> ListedPod:
    preference = Preference(10, NodeTerm(equals({"role": role})))
    return ListedPod(
        pod=pod(name, node=at, cpu=cpu), preferences=(preference,), has_preferences=True
    )


def test_descheduler_1519_two_pods_that_want_each_others_place_swap() -> None:
    nodes = [host("a", role="x", cpu="2"), host("b", role="y", cpu="2"), host("c", cpu="2")]
    pods = [preferring("p", "a", "y", "2"), preferring("q", "b", "x", "2")]
    cluster = cluster_of(*nodes, *pods)
    plan = planned(cluster, PREFERRED)
    assert moves(plan) == [("p", "a", "c"), ("q", "b", "a"), ("p", "c", "b")]
    assert_at_rest(plan, cluster, PREFERRED)
    without = planned(cluster_of(*nodes[:2], *pods), PREFERRED)
    assert not without.moves
    assert {kept.pod.name for kept in without.kept} == {"p", "q"}


def test_descheduler_1584_one_slot_is_promised_once() -> None:
    taint = Taint("maintenance", "", "NoSchedule")
    pods = [pod(f"p{n}", node="full", cpu="8", memory="16Gi") for n in range(10)]
    nodes = [
        host("full", taint, cpu="80", memory="160Gi"),
        host("roomy", cpu="8", memory="16Gi"),
        *(host(f"small{n}", cpu="7", memory="15Gi") for n in range(10)),
    ]
    plan = planned(cluster_of(*nodes, *pods), TAINTS)
    assert moves(plan) == [("p0", "full", "roomy")]
    assert len(plan.kept) == 9
    assert plan.kept[0].why == "no node that would be better has room for it"


def test_what_is_held_is_not_promised() -> None:
    taint = Taint("maintenance", "", "NoSchedule")
    things = cluster_of(host("a", taint, cpu="2"), host("b", cpu="2"), pod("p", node="a", cpu="2"))
    assert len(planned(things, TAINTS).moves) == 1
    assert not planned(things, TAINTS, held={"b": {"cpu": 1}}).moves


def test_descheduler_1707_no_pod_goes_to_a_node_that_it_does_not_prefer() -> None:
    nodes = [host("spot", role="spot", cpu="2"), host("a", cpu="8"), host("b", cpu="8")]
    pods = [preferring(f"p{n}", "a", "spot", "1") for n in range(3)]
    only_spot = Constraints(node_selector=equals({"role": "spot"}))
    filler = pod("filler", node="spot", cpu="1", constraints=only_spot)
    cluster = cluster_of(*nodes, *pods, filler)
    plan = planned(cluster, PREFERRED)
    assert moves(plan) == [("p0", "a", "spot")]
    assert_at_rest(plan, cluster, PREFERRED)


def owned(name: str, at: str, cpu: str = "1") -> ListedPod:
    owner = Owner("ReplicaSet", "web", "web-uid", is_controller=True)
    return ListedPod(pod=pod(name, node=at, cpu=cpu), owners=(owner,), images=("web",))


def test_descheduler_827_duplicates_stay_where_no_node_with_fewer_has_room() -> None:
    nodes = [host("a", cpu="4"), host("b", cpu="4"), host("c", cpu="4")]
    pods = [owned("p1", "a"), owned("p2", "a"), owned("p3", "b")]
    full = cluster_of(*nodes, *pods, pod("filler", node="c", cpu="4"))
    assert not planned(full, DUPLICATES).moves
    roomy = cluster_of(*nodes, *pods)
    plan = planned(roomy, DUPLICATES)
    assert moves(plan) == [("p1", "a", "c")]
    assert_at_rest(plan, roomy, DUPLICATES)


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
    """Three pods on a; Prometheus says how much of each node is used."""
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


def test_of_two_that_may_not_be_near_each_other_one_leaves() -> None:
    apart = Constraints(
        anti_affinity=(PodTerm(equals({"app": "x"}), HOST, frozenset({NAMESPACE})),)
    )
    both = [pod(n, node="a", cpu="1", labels={"app": "x"}, constraints=apart) for n in "pq"]
    cluster = cluster_of(host("a", cpu="4"), host("b", cpu="4"), *both)
    args = RemovePodsViolatingInterPodAntiAffinity()
    plan = planned(cluster, args)
    assert moves(plan) == [("p", "a", "b")]
    assert not planned(after(plan, cluster), args).moves


def test_limits_and_budgets_are_spent_within_the_plan() -> None:
    taint = Taint("maintenance", "", "NoSchedule")
    things = [host("a", taint, cpu="8"), host("b", cpu="8")]
    pods = [pod(f"p{n}", node="a", cpu="1", labels={"app": "p"}) for n in range(4)]
    for limits, expected in (
        (EvictionLimits(total=2), "maxNoOfPodsToEvictTotal"),
        (EvictionLimits(per_node=2), "maxNoOfPodsToEvictPerNode"),
        (EvictionLimits(per_namespace=2), "maxNoOfPodsToEvictPerNamespace"),
    ):
        plan = planned(cluster_of(*things, *pods), TAINTS, limits=limits)
        assert len(plan.moves) == 2
        assert expected in plan.kept[0].why
    plan = planned(cluster_of(*things, *pods, budgets=(budget("pdb", 2, app="p"),)), TAINTS)
    assert len(plan.moves) == 2
    assert "PodDisruptionBudget" in plan.kept[0].why


@pytest.mark.parametrize("seed", range(8))
def test_no_pod_is_sent_where_it_would_be_moved_again(seed: int) -> None:
    drawn = random.Random(seed)
    nodes = []
    for number in range(8):
        taints = [Taint("t", "", "NoSchedule")] if drawn.random() < 0.2 else []
        role = {"role": drawn.choice("xy")} if drawn.random() < 0.5 else {}
        size = {"cpu": "16", "memory": "16Gi"}
        nodes.append(host(f"n{number}", *taints, rack=f"r{number % 3}", **role, **size))
    pods: list[ListedPod] = []
    free = dict.fromkeys((each.name for each in nodes), 16)
    for number in range(60):
        at = drawn.choice([name for name, left in free.items() if left])
        free[at] -= 1
        kind = drawn.randrange(4)
        memory = f"{drawn.randint(100, 1000)}Mi"
        spread = spread_pod(f"s{number}", at, "rack", HOST, hard=drawn.random() < 0.5)
        pods.append(
            [
                spread,
                owned(f"o{number}", at),
                preferring(f"f{number}", at, drawn.choice("xy"), "1"),
                listed(pod(f"m{number}", node=at, cpu="1", memory=memory)),
            ][kind]
        )
    cluster = cluster_of(*nodes, *pods)
    for args in (
        TAINTS,
        PREFERRED,
        DUPLICATES,
        SPREAD,
        LowNodeUtilization(thresholds={"cpu": 40.0}, target_thresholds={"cpu": 60.0}),
        HighNodeUtilization(thresholds={"cpu": 30.0}),
    ):
        plan = planned(cluster, args)
        assert plan == planned(cluster, args), "the same cluster, the same plan"
        assert_at_rest(plan, cluster, args)


def unequal() -> RoundInput:
    """Memory: a at 90 %, b at 10 %; pods of 5 % and of 30 %."""
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
