"""The cost of moving a pod, and its effect on plans."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.rebalance import emptying, pending, planner
from reserver.rebalance.move_cost import cost, with_costs
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.round_input import RoundInput
from tests.unit.rebalance.build import NOW, cluster_of, node, pod
from tests.unit.rebalance.policies import configured, reading

JOB = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]}
AT = "creationTimestamp"
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
RESTARTED = {"containerStatuses": [{"name": "c", "restartCount": 5}]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, 1.0),
        ({"metadata": {AT: "2030-01-31T09:59:00Z"}}, 2.0),
        ({"metadata": {AT: "2031-01-31T09:59:00Z"}}, 2.0),
        ({"metadata": JOB}, 2.0),
        ({"metadata": JOB | {AT: "2030-01-31T07:30:00Z"}}, 3.5),
        ({"metadata": JOB | {AT: "2030-01-01T00:00:00Z"}}, 9.0),
        ({"spec": CLAIM}, 2.0),
        ({"spec": {"priority": 1_000_000}}, 2.0),
        ({"spec": {"priority": 999_999}}, 1.0),
        ({"status": RESTARTED}, 0.5),
        ({"spec": CLAIM, "status": RESTARTED}, 1.0),
        ({"status": {"startTime": "2030-01-31T09:55:00Z"}}, 2.0),
    ],
    ids=[
        "ordinary",
        "young",
        "from the future",
        "job",
        "longer job",
        "very long job",
        "volume",
        "important",
        "less important",
        "restarts",
        "volume and restarts",
        "started late",
    ],
)
def test_age_priority_restarts_volumes_and_lost_work_weigh(
    parts: dict[str, Any], expected: float
) -> None:
    (found,) = cluster_of(pod("p", "a", **parts)).pods
    assert cost(found, NOW) == expected


def given(*things: dict[str, Any], policy: DeschedulerPolicy | None = None) -> RoundInput:
    return RoundInput(
        policy=policy or DeschedulerPolicy(),
        cluster=cluster_of(*things),
        loads={},
        rounds={},
        now=NOW,
    )


def test_moves_say_what_they_cost_and_landings_cost_nothing() -> None:
    asked = given(node("a"), pod("p", "a", metadata=JOB), pod("q"))
    leaves, lands = (
        PlannedMove(pod=each.name, uid="", source=each.node, target="b", strategy="S")
        for each in asked.cluster.pods
    )
    found = with_costs(Plan(moves=(leaves, lands)), asked.cluster, NOW)
    assert ([move.cost for move in found.moves], found.cost) == ([2.0, 0.0], 2.0)


@pytest.mark.parametrize(("dear", "leaves"), [("p0", "p1"), ("p1", "p0")])
def test_of_equally_important_pods_the_cheapest_leaves_first(dear: str, leaves: str) -> None:
    args = "{thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}"
    policy = reading(configured("LowNodeUtilization", args, "balance")).policy
    pods = [
        pod(name, "a", requests={"cpu": "1500m"}, metadata=JOB if name == dear else {})
        for name in ("p0", "p1")
    ]
    found = planner.decide(given(node("a"), node("b"), *pods, policy=policy)).plan
    assert [move.pod.name for move in found.moves] == [leaves]


def test_the_node_whose_pods_cost_least_is_emptied_first() -> None:
    dear = pod("dear", "a", requests={"cpu": "1"}, metadata=JOB | {AT: "2030-01-31T05:00:00Z"})
    cheap = [pod(f"cheap{n}", "b", requests={"cpu": "1"}) for n in range(2)]
    stays = pod("stays", "c", requests={"cpu": "1"}, metadata={"ownerReferences": []})
    plan = emptying.decide(given(*map(node, "abc"), dear, *cheap, stays), {}).plan
    assert plan.emptied == ("a", "b")
    first = emptying.whole_nodes(plan, (), frozenset(), most=2)
    assert {move.pod.name for move in first} == {"cheap0", "cheap1"}


@pytest.mark.parametrize(("dear", "emptied"), [("p0", "b"), ("p1", "a")])
def test_of_equal_nodes_the_one_whose_pods_cost_least_is_emptied(dear: str, emptied: str) -> None:
    pods = [
        pod(name, on, requests={"cpu": "2"}, metadata=JOB if name == dear else {})
        for name, on in (("p0", "a"), ("p1", "b"))
    ]
    stays = pod("stays", "c", requests={"cpu": "2"}, metadata={"ownerReferences": []})
    plan = emptying.decide(given(*map(node, "abc"), *pods, stays), {}).plan
    assert plan.emptied == (emptied,)


@pytest.mark.parametrize(("dear", "leaves"), [("p0", "p1"), ("p1", "p0")])
def test_of_equal_pods_the_cheapest_makes_room(dear: str, leaves: str) -> None:
    pods = [
        pod(name, "a", requests={"cpu": "2"}, metadata=JOB if name == dear else {})
        for name in ("p0", "p1")
    ]
    stays = pod("stays", "b", requests={"cpu": "2"}, metadata={"ownerReferences": []})
    wanted = pod("wanted", "", requests={"cpu": "2"}, spec={"nodeSelector": {"on": "a"}})
    asked = given(node("a", labels={"on": "a"}), node("b"), *pods, stays, wanted)
    found = pending.decide(asked, {}).plan
    assert [move.pod.name for move in found.moves if move.source] == [leaves]
