"""A policy judged as one plan, on complaints of users of the descheduler."""

import random
from collections import Counter

import msgspec
import pytest

from reserver.cluster.constraints import Constraints, NodeTerm, PodTerm, Spread, Taint
from reserver.cluster.labels import Requirement, Selector, equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance import upstream
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.utilization import HighNodeUtilization, LowNodeUtilization
from reserver.rebalance.cluster_state import ClusterState, ListedPod, Owner, Preference, SpreadRule
from reserver.rebalance.planner import decide
from reserver.rebalance.policy import DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.round_input import RoundInput
from tests.builders import NAMESPACE, NOW, pod
from tests.unit.rebalance.planned import (
    HOST,
    after,
    assert_at_rest,
    cluster_of,
    host,
    listed,
    planned,
)
from tests.unit.rebalance.scenes import budget, moves

HARD = "DoNotSchedule"
PREFERRED = RemovePodsViolatingNodeAffinity(node_affinity_type=(NodeAffinityType.PREFERRED,))
TAINTS = RemovePodsViolatingNodeTaints()
SPREAD = RemovePodsViolatingTopologySpreadConstraint()
DUPLICATES = RemoveDuplicates()


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
    """Upstream evicts 26: it solves the constraints of racks and of nodes one by one."""
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


def test_each_profile_has_its_own_evictor_though_another_one_has_its_name() -> None:
    taint = Taint("maintenance", "", "NoSchedule")
    first, second = (pod(name, node="a", labels={"app": name}) for name in ("first", "second"))
    cluster = cluster_of(host("a", taint), host("b"), first, second)
    profiles = tuple(
        Profile(
            name="p",
            evictor=DefaultEvictor(label_selector=equals({"app": name})),
            deschedule=(RemovePodsViolatingNodeTaints(label_selector=equals({"app": "first"})),),
        )
        for name in ("first", "second")
    )
    rules = DeschedulerPolicy(profiles=profiles)
    given = RoundInput(policy=rules, cluster=cluster, loads={}, rounds={}, now=NOW)
    assert moves(decide(given).plan) == [("first", "a", "b")]
    assert [each.pod.name for each in upstream.decide(given).plan.moves] == ["first"]


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


def test_constraints_that_are_too_many_end_the_turn_of_their_namespace_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reserver.rebalance.strategies.spread_together.MOST_COMPARED", 20)
    things: list[Node | Pod | ListedPod] = [host(each, cpu="9") for each in "ab"]
    for number in range(8):  # Each has a constraint of its own, which counts all of them.
        selector = Selector((Requirement("x", "NotIn", frozenset({f"{number}"})),))
        spread = Spread(topology_key=HOST, selector=selector)
        made = pod(f"g{number}", uid=f"g{number}", namespace="greedy", node="a")
        things.append(ListedPod(pod=made, spreads=(SpreadRule(spread, HARD),)))
    things += [spread_pod(f"p{number}", "a", HOST) for number in range(2)]
    plan = planned(cluster_of(*things), SPREAD)
    assert [str(move.pod) for move in plan.moves if move.pod.namespace != "greedy"] == ["shop/p0"]
    assert plan.notes == (
        (
            "RemovePodsViolatingTopologySpreadConstraint judges no more constraints of greedy: "
            "they are too many"
        ),
    )
