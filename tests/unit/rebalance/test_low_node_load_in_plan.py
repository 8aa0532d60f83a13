"""LowNodeLoad within a plan."""

from dataclasses import replace

import msgspec

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad, NodePool
from reserver.rebalance.cluster_state import ClusterState, Owner
from reserver.rebalance.measured_load import Rounds
from reserver.rebalance.plan import Plan
from reserver.rebalance.planner import decide
from reserver.rebalance.policy import DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.round_input import RoundInput
from tests.builders import node, pod
from tests.unit.rebalance.scenes import assert_feasible, cluster_of, moves

OWNER = Owner("ReplicaSet", "rs", "rs-uid", is_controller=True)
POOL = NodePool(
    low_thresholds={"cpu": 40},
    high_thresholds={"cpu": 80},
    anomaly_condition=AnomalyCondition(consecutive_abnormalities=1),
)
POLICY = DeschedulerPolicy(profiles=(Profile(name="p", balance=(LowNodeLoad(pools=(POOL,)),)),))


def cluster(*things: Node | Pod, used: dict[str, int]) -> ClusterState:
    """Return a cluster of nodes with ten cores, and the used millicores by node or pod."""
    listed = cluster_of(*things)
    return replace(
        listed,
        pods=tuple(msgspec.structs.replace(each, owners=(OWNER,)) for each in listed.pods),
        node_usage={name: {"cpu": used[name]} for name in used if not name.startswith("p")},
        pod_usage={
            each.name: ({"cpu": used[each.name.name]},)
            for each in things
            if isinstance(each, Pod) and each.name.name in used
        },
    )


def hosts(*names: str) -> list[Node]:
    return [node(name, cpu="10") for name in names]


def look_at(cluster: ClusterState, policy: DeschedulerPolicy = POLICY) -> RoundInput:
    return RoundInput(policy=policy, cluster=cluster, loads={}, rounds={}, now=0.0)


def judged(cluster: ClusterState, policy: DeschedulerPolicy = POLICY) -> Plan:
    return decide(look_at(cluster, policy)).plan


def test_pods_leave_a_hot_node_for_nodes_that_have_room_for_what_they_request() -> None:
    things: tuple[Node | Pod, ...] = (
        *hosts("hot", "idle-and-full", "idle"),
        pod("p1", node="hot", cpu="2"),
        pod("p2", node="hot", cpu="2"),
        pod("wide", node="idle-and-full", cpu="9"),
    )
    used = {"hot": 9500, "idle-and-full": 100, "idle": 1000, "p1": 1000, "p2": 1000}
    plan = judged(cluster(*things, used=used))
    assert moves(plan) == [("p1", "hot", "idle"), ("p2", "hot", "idle")]
    assert_feasible(plan, *things)
    assert plan.moves[0].reason == "node is overutilized, cpu usage(95.00%)>threshold(80.00%)"


def test_limits_of_the_policy_count() -> None:
    things: tuple[Node | Pod, ...] = (
        *hosts("hot", "idle"),
        pod("p1", node="hot"),
        pod("p2", node="hot"),
    )
    used = {"hot": 9900, "idle": 0, "p1": 1000, "p2": 1000}
    limited = replace(POLICY, limits=EvictionLimits(total=1))
    assert len(judged(cluster(*things, used=used), limited).moves) == 1


def test_what_is_spared_is_kept_with_its_reason() -> None:
    things: tuple[Node | Pod, ...] = (
        *hosts("hot", "full"),
        pod("p1", node="hot", cpu="2"),
        pod("q", node="full", cpu="9"),
    )
    plan = judged(cluster(*things, used={"hot": 9900, "full": 0, "p1": 1000}))
    (kept,) = plan.kept
    assert (kept.pod.name, kept.node, kept.strategy, kept.why) == (
        "p1",
        "hot",
        "LowNodeLoad",
        "no node that takes load has room for it",
    )


def test_rounds_are_handed_on() -> None:
    slow = msgspec.structs.replace(
        POOL, anomaly_condition=AnomalyCondition(consecutive_abnormalities=2)
    )
    policy = DeschedulerPolicy(profiles=(Profile(name="p", balance=(LowNodeLoad(pools=(slow,)),)),))
    things: tuple[Node | Pod, ...] = (*hosts("hot", "idle"), pod("p1", node="hot"))
    found = cluster(*things, used={"hot": 9900, "idle": 0, "p1": 2000})
    rounds, counts = dict[str, Rounds](), list[int]()
    for now in (0.0, 60.0, 120.0):
        decision = decide(replace(look_at(found, policy), rounds=rounds, now=now))
        rounds = dict(decision.rounds)
        counts.append(len(decision.plan.moves))
    assert counts == [0, 0, 1]


def test_without_metrics_each_node_is_named_and_nothing_moves() -> None:
    plan = judged(cluster(*hosts("n1", "n2"), pod("p1", node="n1"), used={}))
    assert plan.moves == ()
    assert plan.notes == (
        "LowNodeLoad skips node n1: it has no metrics",
        "LowNodeLoad skips node n2: it has no metrics",
    )
