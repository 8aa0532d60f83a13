"""The order in which pods get to where they are to be."""

from dataclasses import replace
from time import thread_time

from hack.bed.pace import slowness
from reserver.cluster.constraints import Constraints, PodTerm
from reserver.cluster.labels import equals
from reserver.rebalance.limits import Disruptions
from reserver.rebalance.ordering import Step, order, take_back
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from tests.builders import NAMESPACE, name, node, pod
from tests.unit.rebalance.scenes import budget, list_of, scene

HOST = "kubernetes.io/hostname"
Q_ON_B = pod("q", node="b", cpu="2", labels={"app": "q"})
FULL = list_of(node("a", cpu="2"), pod("p", node="a", cpu="2"), node("b", cpu="2"), Q_ON_B)
P, Q = range(2)
SWAP = {P: 1, Q: 0}


def _rows(found: PlanningSnapshot) -> list[int]:
    return [int(row) for row in found.rows]


def test_a_swap_goes_through_a_free_place() -> None:
    found = scene(*FULL, node("c", cpu="2"))
    a, b, c = (found.snapshot.row(each) for each in "abc")
    result = order(found, {P: b, Q: a})  # type: ignore[dict-item]
    assert not result.stuck
    assert result.steps == (Step(P, a, c), Step(Q, b, a), Step(P, c, b))  # type: ignore[arg-type]
    assert _rows(found) == [b, a]
    take_back(found, result.steps)
    assert _rows(found) == [a, b]


def test_a_swap_without_a_free_place_is_stuck_and_says_why() -> None:
    found = scene(*FULL)
    result = order(found, SWAP)
    assert not result.steps
    assert set(result.stuck) == {P, Q}
    assert result.stuck[P] == "b has no room for it while other pods wait for its place"


def test_a_chain_runs_from_its_free_end() -> None:
    found = scene(*FULL, node("c", cpu="2"))
    result = order(found, {P: 1, Q: 2})
    assert [step.number for step in result.steps] == [Q, P]


def test_nobody_steps_aside_for_a_pod_that_a_budget_keeps() -> None:
    found = scene(*FULL, node("c", cpu="2"))
    found.disruptions = Disruptions([budget("q", 0, app="q")])
    result = order(found, SWAP)
    assert not result.steps
    assert "PodDisruptionBudget q allows no further disruption" in result.stuck[Q].replace(
        "shop/", ""
    )


def test_several_step_aside_at_once() -> None:
    found = scene(
        *(node(each, cpu=size) for each, size in (("a", "4"), ("b", "4"), ("c", "2"), ("d", "2"))),
        pod("large", node="a", cpu="4"),
        pod("small-1", node="b", cpu="2"),
        pod("small-2", node="b", cpu="2"),
    )
    a, b = (found.snapshot.row(each) for each in "ab")
    result = order(found, {0: b, 1: a, 2: a})  # type: ignore[dict-item]
    assert not result.stuck
    assert _rows(found) == [b, a, a]
    assert len(result.steps) == 5


def test_who_is_waited_for_goes_before_who_would_take_its_room() -> None:
    found = scene(
        *(node(each, cpu=size) for each, size in (("a", "2"), ("b", "4"), ("c", "2"))),
        pod("p", node="a", cpu="2"),
        pod("q", node="c", cpu="2"),
        pod("r", node="b", cpu="2"),
    )
    b, c = (found.snapshot.row(each) for each in "bc")
    result = order(found, {0: b, 1: b, 2: c})  # type: ignore[dict-item]
    assert [step.number for step in result.steps] == [1, 2, 0]


def test_company_stays_until_those_who_need_it_have_come() -> None:
    near = Constraints(affinity=(PodTerm(equals({"app": "q"}), HOST, frozenset({NAMESPACE})),))
    found = scene(
        *(node(each, cpu="4", labels={HOST: each}) for each in "abc"),
        pod("company", node="b", cpu="1", labels={"app": "q"}),
        pod("follower", node="a", cpu="1", constraints=near),
    )
    result = order(found, {0: 2, 1: 1})
    assert not result.stuck
    assert [step.number for step in result.steps] == [1, 0]


def test_many_pods_that_need_each_other_are_ordered_at_once() -> None:
    near = Constraints(affinity=(PodTerm(equals({"app": "q"}), "zone", frozenset({NAMESPACE})),))
    nodes = [node(f"n{each}", cpu="10", labels={"zone": "a"}) for each in range(400)]
    one = pod("", cpu="1", labels={"app": "q"}, constraints=near)
    pods = [
        replace(one, name=name(f"p{each}"), uid=f"p{each}", node=f"n{each % 200}")
        for each in range(2_000)
    ]
    found = scene(*nodes, *pods)
    goals = {each: (int(found.rows[each]) + 200) % 400 for each in range(2_000)}
    began = thread_time()
    result = order(found, goals)
    assert thread_time() - began < 0.4 * slowness()
    assert len(result.steps) == 2_000
