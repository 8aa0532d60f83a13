"""Room for pods that fit nowhere, with the fewest moves."""

import time

from reserver.cluster.constraints import Constraints, PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.makeroom import make_room, room_for
from reserver.rebalance.time_limit import TimeLimit
from tests.builders import NAMESPACE, node, pod
from tests.unit.rebalance.scenes import assert_feasible, budget, list_of, moves, scene

HOST = "kubernetes.io/hostname"
BIG = pod("big", cpu="4")
A, B, C = (node(each, cpu="4", labels={HOST: each}) for each in "abc")


def test_a_pod_that_fits_moves_nobody() -> None:
    plan = make_room(scene(A, pod("p", node="a", cpu="1"), B, wanted=[BIG]))
    assert not plan.moves
    assert [landing.node for landing in plan.landings] == ["b"]
    assert plan.bound.fewest_moves == 0


def test_one_move_makes_room() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="3")
    )
    plan = make_room(scene(*things, wanted=[BIG]))
    assert moves(plan) == [("p", "a", "b")]
    assert plan.moves[0].reason == "makes room for shop/big"
    assert plan.bound.fewest_moves == 1
    assert_feasible(plan, *things, wanted=[BIG])


def test_a_reason_names_no_pod_of_another_namespace() -> None:
    """An event on the pod that moves has the reason, and its tenants read it."""
    things = list_of(A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="3"))
    (move,) = make_room(scene(*things, wanted=[pod("big", namespace="bank", cpu="4")])).moves
    assert move.reason == "makes room for a pod of another namespace"
    assert move.improves == "room for bank/big"


def test_a_chain_makes_room_where_no_single_move_does() -> None:
    things: list[Node | Pod] = list_of(
        node("a", cpu="4"),
        pod("p", node="a", cpu="2"),
        node("b", cpu="4"),
        pod("q", node="b", cpu="1"),
        pod("r", node="b", cpu="2"),
        node("c", cpu="1"),
    )
    plan = make_room(scene(*things, wanted=[BIG]))
    assert moves(plan) == [("q", "b", "c"), ("p", "a", "b")]
    assert_feasible(plan, *things, wanted=[BIG])


def test_a_swap_makes_room() -> None:
    things: list[Node | Pod] = list_of(
        node("a", cpu="4", labels={HOST: "a"}),
        pod("large", node="a", cpu="3"),
        node("b", cpu="3"),
        pod("small", node="b", cpu="1"),
    )
    only_a = Constraints(node_selector=equals({HOST: "a"}))
    wanted = pod("wanted", cpu="3", constraints=only_a)
    plan = make_room(scene(*things, wanted=[wanted]))
    assert moves(plan) == [("small", "b", "a"), ("large", "a", "b")]
    assert [landing.node for landing in plan.landings] == ["a"]
    assert_feasible(plan, *things, wanted=[wanted])


def test_a_pod_that_nothing_helps_is_named() -> None:
    only_a = Constraints(node_selector=equals({HOST: "a"}))
    things: list[Node | Pod] = list_of(
        node("a", cpu="4", labels={HOST: "a"}), pod("p", node="a", cpu="4")
    )
    things += list_of(node("b", cpu="3"), pod("q", node="b", cpu="3"), node("c", cpu="1"))
    wanted = pod("wanted", cpu="1", constraints=only_a)
    plan = make_room(scene(*things, wanted=[wanted]))
    assert not plan.moves
    assert [kept.pod.name for kept in plan.kept] == ["wanted"]
    assert "6 moves or fewer" in plan.kept[0].why
    searched = make_room(scene(*things, wanted=[wanted]), limit=TimeLimit.after(5, time.monotonic))
    assert searched.kept[0].why == "no plan makes room for more pods than this one"


def test_a_pod_that_is_larger_than_every_node_is_told_so() -> None:
    things = list_of(node("a", cpu="4"), pod("p", node="a", cpu="3"), node("b", cpu="8"))
    plan = make_room(scene(*things, wanted=[pod("wanted", cpu="9"), pod("tall", cpu="8")]))
    assert [(each.pod.name, each.why) for each in plan.kept] == [
        ("wanted", "it requests more than any node has")
    ]


def test_where_no_pod_may_be_moved_that_is_said() -> None:
    things = list_of(node("a", cpu="4"), pod("p", node="a", cpu="3"))
    cluster = scene(*things, wanted=[pod("wanted", cpu="2")], protects=lambda _: "protected")
    plan = make_room(cluster, limit=TimeLimit.after(5, time.monotonic))
    assert [each.why for each in plan.kept] == ["no pod may be moved to make room for it"]


def _lane(name: str, length: int) -> list[Node | Pod]:
    """Return a pod on node a that may use a chain of nodes, all but the last one full."""
    things: list[Node | Pod] = []
    for step in range(length + 1):
        here = "a" if step == 0 else f"{name}{step}"
        only = Constraints(node_selector=equals({f"{name}{step}": "yes"}))
        labels = {f"{name}{step}": "yes", f"{name}{step - 1}": "yes"}
        if step:
            things.append(node(here, cpu=f"{1100 - 100 * step}m", labels=labels))
        if step < length:  # Only smaller ones make way.
            cpu = f"{1000 - 100 * step}m"
            things.append(pod(f"{name}-{step}", node=here, cpu=cpu, constraints=only))
    return things


def test_chains_together_take_no_more_moves_than_one_may() -> None:
    wanted = pod("wanted", cpu="3", constraints=Constraints(node_selector=equals({HOST: "a"})))
    whole = node("a", cpu="3", labels={HOST: "a", "x0": "yes", "y0": "yes", "z0": "yes"})
    for lengths, count in (((3, 1, 1), 5), ((3, 2, 1), 6), ((3, 3, 1), 0)):
        lanes = [_lane(name, length) for name, length in zip("xyz", lengths, strict=True)]
        things = list_of(whole, *(each for lane in lanes for each in lane))
        plan = make_room(scene(*things, wanted=[wanted]))
        assert len(plan.moves) == count
        assert bool(plan.kept) == (count == 0)
        assert_feasible(plan, *things, wanted=[wanted])
    limit = TimeLimit.after(5, time.monotonic)
    searched = make_room(scene(*things, wanted=[wanted]), limit=limit)
    assert len(searched.moves) == 7
    assert_feasible(searched, *things, wanted=[wanted])


def test_what_is_held_counts_as_used() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="3")
    )
    plan = make_room(scene(*things, wanted=[BIG], held={"b": {"cpu": 1000}}))
    assert not plan.moves
    assert plan.kept


def test_a_pod_that_is_not_wanted_near_makes_way() -> None:
    apart = Constraints(
        anti_affinity=(PodTerm(equals({"app": "x"}), HOST, frozenset({NAMESPACE})),)
    )
    wanted = pod("wanted", cpu="1", constraints=apart)
    things: list[Node | Pod] = list_of(A, pod("x1", node="a", cpu="1", labels={"app": "x"}))
    things += list_of(B, pod("x2", node="b", cpu="1", labels={"app": "x"}))
    plan = make_room(scene(*things, wanted=[wanted]))
    assert len(plan.moves) == 1
    assert_feasible(plan, *things, wanted=[wanted])


def test_a_budget_is_spent_within_the_plan() -> None:
    things: list[Node | Pod] = list_of(
        A, *(pod(f"p{n}", node="a", cpu="2", labels={"app": "p"}) for n in range(2))
    )
    things += list_of(B, pod("q", node="b", cpu="1"), C, pod("r", node="c", cpu="1"))
    wanted = [BIG]
    free = make_room(scene(*things, wanted=wanted))
    assert len(free.moves) == 1  # q or r goes to the other.
    allowed = make_room(scene(*things, wanted=wanted, budgets=[budget("p", 1, app="p")]))
    assert len(allowed.moves) == 1
    stuck = scene(
        *things, wanted=wanted, budgets=[budget("p", 0, app="p")], protects=_protects_all_but_p
    )
    kept = make_room(stuck)
    assert not kept.moves
    assert [each.pod.name for each in kept.kept] == ["big"]


def _protects_all_but_p(each: object) -> str:
    return "" if each.name.name.startswith("p") else "somebody protects it"  # type: ignore[attr-defined]


def test_a_set_gets_room_together_or_not_at_all() -> None:
    wanted = [BIG, pod("second", cpu="4")]
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="3")
    )
    both = make_room(scene(*things, wanted=wanted), together=True)
    assert not both.moves
    assert {each.pod.name for each in both.kept} == {"big", "second"}
    one = make_room(scene(*things, wanted=wanted))
    assert len(one.moves) == 1


def test_no_solver_finds_fewer_moves_than_are_proved() -> None:
    things: list[Node | Pod] = list_of(
        A, pod("p", node="a", cpu="1"), B, pod("q", node="b", cpu="3")
    )
    plan = make_room(scene(*things, wanted=[BIG]), limit=TimeLimit.after(5, time.monotonic))
    assert len(plan.moves) == 1
    assert plan.bound[:2] == (1, None)


def test_the_class_model_finds_room_by_more_moves_than_are_tried_one_by_one() -> None:
    things: list[Node | Pod] = list_of(node("a", cpu="7"))
    for at in range(7):
        things += list_of(
            pod(f"p{at}", node="a", cpu="1"),
            node(f"b{at}", cpu="1500m"),
            pod(f"q{at}", node=f"b{at}"),
        )
    wanted = [pod("wide", cpu="7")]
    plan = make_room(scene(*things, wanted=wanted), limit=TimeLimit.after(600, time.monotonic))
    assert_feasible(plan, *things, wanted=wanted)
    assert (len(plan.landings), len(plan.moves)) == (1, 7)


def test_pods_that_find_no_room_leave_the_search_places_for_other_namespaces() -> None:
    things: list[Node | Pod] = []
    for host in map("n{}".format, range(5)):
        things.append(node(host, cpu="8"))
        things += (pod(f"{host}-{n}", node=host, cpu="1250m") for n in range(6))
    things += list_of(node("s1", cpu="4"), pod("r", node="s2", cpu="800m"), node("s2", cpu="2"))
    things += list_of(pod("p", node="s1", cpu="1200m"), pod("q", node="s1", cpu="1600m"))
    greedy = [pod(f"g{n}", namespace="greedy", cpu="3900m", labels={"n": f"{n}"}) for n in range(9)]
    planned = scene(*things, wanted=[*greedy, pod("wanted", cpu="1700m")])
    wanted = range(len(planned.pods) - 10, len(planned.pods))
    assert room_for(planned, wanted, steps=500).without == tuple(wanted[:-1])
