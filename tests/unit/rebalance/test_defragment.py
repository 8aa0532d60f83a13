"""Nodes emptied with few moves."""

import random
import time

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Controller, Pod
from reserver.rebalance.defragment import defragment
from reserver.rebalance.time_limit import TimeLimit
from tests.builders import node, pod
from tests.unit.rebalance.scenes import assert_feasible, budget, list_of, moves, scene

A, B, C = (node(each, cpu="4") for each in "abc")


def test_the_node_with_the_fewest_pods_is_emptied() -> None:
    things: list[Node | Pod] = list_of(A, pod("p", node="a", cpu="1"), pod("q", node="a", cpu="1"))
    things += list_of(B, pod("r", node="b", cpu="1"), C, pod("s", node="c", cpu="4"))
    plan = defragment(scene(*things))
    assert plan.emptied == ("b",)
    assert moves(plan) == [("r", "b", "a")]
    assert plan.moves[0].reason == "b is emptied"
    assert (plan.bound.most_nodes, plan.bound.fewest_moves) == (1, 1)
    assert_feasible(plan, *things)


def test_a_daemon_pod_keeps_no_node() -> None:
    daemon = pod("d", node="b", cpu="1", controller=Controller("DaemonSet", "d"))
    plan = defragment(scene(A, pod("p", node="a", cpu="1"), B, pod("r", node="b", cpu="1"), daemon))
    assert len(plan.emptied) == 1
    assert len(plan.moves) == 1


def test_an_empty_node_stays_empty() -> None:
    plan = defragment(scene(A, pod("p", node="a", cpu="1"), B))
    assert not plan.moves
    assert not plan.emptied


def test_a_node_where_something_is_held_is_not_emptied_and_what_is_held_is_not_taken() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="2")
    )
    held = {"a": {"cpu": 2000}}
    plan = defragment(scene(*things, held=held))
    assert not plan.moves


def test_a_protected_pod_keeps_its_node_and_is_named() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("r", node="b", cpu="3")
    )
    plan = defragment(scene(*things, protects=lambda _: "it has local storage"))
    assert not plan.moves
    assert {(each.pod.name, each.why) for each in plan.kept} == {
        ("p", "it has local storage"),
        ("r", "it has local storage"),
    }


def test_budgets_are_spent_within_the_plan() -> None:
    two = [pod(f"p{n}", node="a", cpu="1", labels={"app": "p"}) for n in range(2)]
    things: list[Node | Pod] = list_of(A, *two, B, pod("r", node="b", cpu="2"))
    budgets = [budget("p", 1, app="p")]
    plan = defragment(scene(*things, budgets=budgets, protects=_protects_r))
    assert not plan.moves
    budgets = [budget("p", 2, app="p")]
    plan = defragment(scene(*things, budgets=budgets, protects=_protects_r))
    assert len(plan.moves) == 2


def _protects_r(each: object) -> str:
    return "it is r" if each.name.name == "r" else ""  # type: ignore[attr-defined]


def test_only_chosen_nodes_are_emptied() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="2")
    )
    plan = defragment(scene(*things), chosen=frozenset({"b"}))
    assert plan.emptied == ("b",)


@pytest.mark.parametrize("seed", range(6))
def test_every_pod_moves_once_and_fits_in_its_turn(seed: int) -> None:
    things = _cluster(seed, nodes=12)
    plan = defragment(scene(*things))
    assert len({move.pod for move in plan.moves}) == len(plan.moves)
    assert_feasible(plan, *things)
    assert len(plan.emptied) <= (plan.bound.most_nodes or 0)
    used = {use.node for use in plan.nodes if use.after}
    assert not used & set(plan.emptied)


def test_as_many_nodes_as_a_solver_finds_with_at_most_a_fifth_more_moves() -> None:
    found = optimum = moved = fewest = 0
    for seed in range(6):
        things = _cluster(seed, nodes=6)
        plan = defragment(scene(*things))
        proved = defragment(scene(*things), limit=TimeLimit.after(60, time.monotonic)).bound
        assert proved.most_nodes is not None
        assert proved.fewest_moves is not None
        found, optimum = found + len(plan.emptied), optimum + proved.most_nodes
        moved, fewest = moved + len(plan.moves), fewest + proved.fewest_moves
    assert optimum
    assert found >= 0.95 * optimum
    assert moved <= 1.2 * fewest


def _cluster(seed: int, nodes: int) -> list[Node | Pod]:
    """Return nodes of two sizes, which pods of many sizes fill to about nine tenths."""
    drawn = random.Random(seed)
    things: list[Node | Pod] = []
    for number in range(nodes):
        cpu = drawn.choice((4000, 8000))
        things.append(node(f"n{number:02}", cpu=f"{cpu}m", memory=f"{cpu}Mi"))
        used = [0, 0]
        most = cpu * drawn.uniform(0.72, 1.0)
        for index in range(100):
            size = int(cpu * drawn.choice((0.05, 0.1, 0.15, 0.25)))
            memory = int(size * drawn.uniform(0.5, 1.4))
            if used[0] + size > most or used[1] + memory > cpu:
                continue
            used = [used[0] + size, used[1] + memory]
            name = f"p{number:02}-{index}"
            things.append(pod(name, node=f"n{number:02}", cpu=f"{size}m", memory=f"{memory}Mi"))
    return things
