"""The limits of a policy hold for plans that make room and that empty nodes, too."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.constraints import Constraints
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance import pending
from reserver.rebalance.defragment import defragment
from reserver.rebalance.makeroom import make_room
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.policy import NO_LIMITS, DeschedulerPolicy, EvictionLimits
from reserver.rebalance.round_input import RoundInput
from tests.builders import node, pod
from tests.unit.rebalance.scenes import assert_feasible, list_of, moves, scene
from tests.unit.rebalance.test_pending import BIG, A, B, cluster

HOST = "kubernetes.io/hostname"
ONE = (EvictionLimits(total=1), EvictionLimits(per_node=1), EvictionLimits(per_namespace=1))
NONE = (EvictionLimits(total=0), EvictionLimits(per_node=0), EvictionLimits(per_namespace=0))


def exceeded(plan: Plan, limits: EvictionLimits, homes: dict[object, str]) -> bool:
    """Return whether a plan exceeds its limits; the steps of a pod count at its first node."""
    gone: list[PlannedMove] = [move for move in plan.moves if move.source]
    by_node = Counter(homes[move.pod] for move in gone)
    by_namespace = Counter(move.pod.namespace for move in gone)
    counts = (
        (len(gone), limits.total),
        (max(by_node.values(), default=0), limits.per_node),
        (max(by_namespace.values(), default=0), limits.per_namespace),
    )
    return any(most is not None and count > most for count, most in counts)


def homes_of(things: list[Node | Pod]) -> dict[object, str]:
    return {each.name: each.node for each in things if isinstance(each, Pod)}


def two_in_the_way() -> list[Node | Pod]:
    """Return nodes without room for 4 CPUs, until two pods leave one of them."""
    nodes = (node(each, cpu="4") for each in "abc")
    return list_of(*nodes, *(pod(f"{n}{i}", node=n, cpu="1") for n in "abc" for i in range(2)))


@pytest.mark.parametrize("limits", [*ONE, *NONE])
def test_room_that_takes_more_than_is_allowed_is_not_made_by_halves(limits: EvictionLimits) -> None:
    things = two_in_the_way()
    wanted = [pod("big", cpu="4")]
    assert len(make_room(scene(*things, wanted=wanted)).moves) == 2
    plan = make_room(scene(*things, wanted=wanted, limits=limits))
    assert (plan.moves, plan.landings) == ((), ())
    assert "maxNoOfPodsToEvict" in plan.kept[0].why


@pytest.mark.parametrize("limits", [*ONE, *NONE])
def test_no_more_nodes_are_emptied_than_is_allowed(limits: EvictionLimits) -> None:
    things = two_in_the_way()
    assert len(defragment(scene(*things)).moves) == 2
    plan = defragment(scene(*things, limits=limits))
    assert (plan.moves, plan.emptied) == ((), ())


def test_with_none_allowed_a_pod_that_fits_has_its_room_all_the_same() -> None:
    things = list_of(node("a", cpu="4"), pod("p", node="a", cpu="2"))
    wanted = [pod("small", cpu="2")]
    plan = make_room(scene(*things, wanted=wanted, limits=EvictionLimits(total=0)))
    assert [landing.node for landing in plan.landings] == ["a"]


def swap() -> tuple[list[Node | Pod], Pod]:
    """Return two pods that must change places through a third node so that a pod fits."""
    nodes = (node(n, cpu=cpu, labels={HOST: n}) for n, cpu in (("a", "4"), ("b", "3"), ("c", "1")))
    large, small = pod("large", node="a", cpu="3"), pod("small", node="b", cpu="1")
    beside = pod("beside", node="a", cpu="1")
    only = [Constraints(node_selector=equals({HOST: n})) for n in "ab"]
    things = list_of(*nodes, replace(large, constraints=only[1]), small, beside)
    return things, pod("wanted", cpu="3", constraints=only[0])


def test_who_steps_aside_is_counted_twice() -> None:
    things, wanted = swap()
    free = make_room(scene(*things, wanted=[wanted]))
    assert len(free.moves) >= 2
    for total in range(len(free.moves) + 1):
        limits = EvictionLimits(total=total)
        plan = make_room(scene(*things, wanted=[wanted], limits=limits))
        assert not exceeded(plan, limits, homes_of(things))
        assert bool(plan.landings) == (total == len(free.moves)) or not plan.moves


def test_what_fits_into_the_limits_is_made_room_for() -> None:
    """Two pods each need one move, and one of the pods gets its room."""
    things = list_of(*(node(n, cpu="4") for n in "abc"))
    things += list_of(*(pod(n, node=n, cpu="1") for n in "ab"), pod("c", node="c", cpu="2"))
    wanted = [pod("big", cpu="4"), pod("large", cpu="4")]
    assert len(make_room(scene(*things, wanted=wanted)).moves) == 2
    plan = make_room(scene(*things, wanted=wanted, limits=EvictionLimits(total=1)))
    assert (len(plan.moves), len(plan.landings), len(plan.kept)) == (1, 1, 1)


def test_rounds_that_make_room_have_the_limits_of_their_policy() -> None:
    for limits in (NO_LIMITS, *ONE, *NONE):
        given = RoundInput(
            policy=DeschedulerPolicy(limits=limits),
            cluster=cluster(A, B, BIG),
            loads={},
            rounds={},
            now=0.0,
        )
        evicted = [move for move in pending.decide(given, {}).plan.moves if move.source]
        assert len(evicted) == (0 if limits in NONE else 1)


MOST = st.one_of(st.none(), st.integers(0, 4))
LIMITS = st.builds(EvictionLimits, per_node=MOST, per_namespace=MOST, total=MOST)
PODS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("123"), st.sampled_from(("shop", "other"))),
    max_size=10,
)


@given(pods=PODS, limits=LIMITS, wanted=st.lists(st.sampled_from("234"), min_size=1, max_size=3))
def test_no_plan_evicts_more_than_its_policy_allows(
    pods: list[tuple[str, str, str]], limits: EvictionLimits, wanted: list[str]
) -> None:
    things: list[Node | Pod] = [node(each, cpu="4") for each in "abcd"]
    free = dict.fromkeys("abcd", 4)
    for number, (on, cpu, space) in enumerate(pods):
        if free[on] >= int(cpu):
            free[on] -= int(cpu)
            # The same names in both namespaces.
            made = pod(f"p{number // 2}", node=on, cpu=cpu, namespace=space, uid=f"u{number}")
            things.append(made)
    unique = {each.name: each for each in things}
    things = list(unique.values())
    pending_pods = [pod(f"w{number}", cpu=cpu) for number, cpu in enumerate(wanted)]
    homes = homes_of(things)
    room = make_room(scene(*things, wanted=pending_pods, limits=limits))
    assert not exceeded(room, limits, homes)
    assert_feasible(room, *things, wanted=pending_pods)
    landed = {landing.pod for landing in room.landings}
    assert landed or not moves(room), "nobody is evicted for nobody"
    emptied = defragment(scene(*things, limits=limits))
    assert not exceeded(emptied, limits, homes)
    assert_feasible(emptied, *things)
