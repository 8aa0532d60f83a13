"""The moves of a plan that become PodMoves."""

from __future__ import annotations

import msgspec
import pytest

from reserver.cluster.pod import PodName
from reserver.rebalance.cluster_state import ClusterState, ListedPod, Owner
from reserver.rebalance.move_batch import Division, chains, divide, once, resting
from reserver.rebalance.plan import PlannedMove
from tests.unit.rebalance.build import cluster_of, pod

REPLICAS = (Owner("ReplicaSet", "web", "u", is_controller=True),)
DAEMONS = (Owner("DaemonSet", "agent", "u", is_controller=True),)


def listed(name: str, owners: tuple[Owner, ...] = REPLICAS, phase: str = "Running") -> ListedPod:
    (found,) = cluster_of(pod(name, "n1")).pods
    return msgspec.structs.replace(found, owners=owners, phase=phase)


def move(name: str, source: str = "n1", target: str | None = "n2") -> PlannedMove:
    where = PodName("shop", name)
    return PlannedMove(pod=where, uid=f"uid-{name}", source=source, target=target, strategy="S")


def divided(
    *moves: PlannedMove, most: int = 9, moving: tuple[tuple[str, str], ...] = ()
) -> Division:
    pods = (*map(listed, "abcd"), listed("old", phase="Failed"), listed("bare", ()))
    cluster = ClusterState(pods=(*pods, listed("agent", DAEMONS)))
    under_way = frozenset((PodName("shop", name), uid) for name, uid in moving)
    return divide(moves, cluster, under_way, most)


def test_moves_keep_their_order() -> None:
    plan = (move("b"), move("a"), move("c", target=None))
    assert divided(*plan) == Division(plan, (), 0)


@pytest.mark.parametrize("name", ["old", "bare", "agent"])
def test_a_pod_that_nothing_replaces_on_another_node_is_evicted_without_a_seat(name: str) -> None:
    assert divided(move(name), move("a")) == Division((move("a"),), (move(name),), 0)


@pytest.mark.parametrize(("uid", "left"), [("", 1), ("uid-a", 1), ("another", 0)])
def test_a_pod_that_moves_already_is_left_alone_and_not_another_of_its_name(
    uid: str, left: int
) -> None:
    assert divided(move("a"), moving=(("a", uid),)).left == left


def test_a_pod_makes_all_of_its_steps_or_none() -> None:
    aside, other, home = move("a", target="n3"), move("b", "n2", "n1"), move("a", "n3", "n2")
    follower, free = move("c", "n4", "n3"), move("d", "n4", "n5")
    plan = (aside, other, home, follower, free)
    assert divided(*plan) == Division(plan, (), 0)
    assert divided(*plan, moving=(("a", ""),)) == Division((free,), (), 4)
    assert divided(*plan, moving=(("b", ""),)) == Division((free,), (), 4)
    assert divided(*plan, most=2) == Division((free,), (), 4)
    assert divided(*plan, most=3) == Division((aside, other, home), (), 2)


def test_what_two_pods_need_of_each_other_is_left_with_both() -> None:
    """Pod a makes way for pod b, which would otherwise only take its first step."""
    one = (move("a", target="n3"), move("a", "n3", "n2"))
    two = (move("b", "n4", "n1"), move("b", "n1", "n5"))
    assert divided(*one, *two) == Division((*one, *two), (), 0)
    assert divided(*one, *two, most=3) == Division(one, (), 2)
    assert divided(*one, *two, moving=(("a", ""),)) == Division((), (), 4)


def test_who_is_evicted_without_a_seat_is_evicted_once() -> None:
    steps = (move("bare", target="n3"), move("bare", "n3", "n2"))
    assert divided(*steps) == Division((), steps[:1], 1)
    assert once((move("a"), move("b"), move("a", "n2", "n3"))) == (move("a"), move("b"))


def test_what_would_begin_anew_where_it_is_has_no_seat_elsewhere_and_stays() -> None:
    assert divided(move("a", target="n1")) == Division((), (), 1)


def room(name: str, node: str) -> PlannedMove:
    return move(name, "", node)


def test_room_for_a_pending_pod_is_made_as_a_whole_or_not_at_all() -> None:
    chain = (room("big", "n1"), move("a", "n1", "n2"), move("b", "n2", "n3"))
    other = move("c", "n4", "n5")
    assert divided(*chain, other) == Division((*chain, other), (), 0)
    aside = (room("big", "n1"), move("a", "n1", "n3"), move("a", "n3", "n2"))
    assert divided(*aside, other) == Division((*aside, other), (), 0)
    through = (room("big", "n3"), *aside[1:])  # While room is held on n3, a has no place there.
    assert divided(*through, other) == Division((other,), (), 3)
    assert divided(*chain, other, most=2).seated == ()
    assert divided(room("big", "n1"), move("bare", "n1"), other) == Division((other,), (), 2)
    assert divided(*chain, moving=(("b", ""),)).seated == ()


def test_moves_belong_together_if_one_goes_to_the_room_that_another_leaves() -> None:
    leaves, follows = move("a", "n1", "n2"), move("b", "n3", "n1")
    beside, anywhere = move("c", "n4", "n2"), move("d", "n5", None)
    assert chains([leaves, beside, follows, anywhere]) == [
        (leaves, follows),
        (beside,),
        (anywhere,),
    ]
    further = move("a", "n2", "n6")
    assert chains([leaves, further]) == [(leaves, further)]
    assert chains([room("big", "n3"), leaves, follows]) == [(room("big", "n3"), leaves, follows)]


def test_no_more_are_written_than_may_be_under_way() -> None:
    assert divided(move("a"), move("b"), move("old"), move("c"), most=2) == Division(
        (move("a"), move("b")), (move("old"),), 1
    )


@pytest.mark.parametrize(("now", "rests"), [(4299.0, True), (4300.0, False), (400.0, False)])
def test_a_pod_whose_move_has_failed_rests_for_minutes_even_if_the_clock_is_set_back(
    now: float, *, rests: bool
) -> None:
    pod = PodName("shop", "a"), "uid"
    assert resting([(*pod, 4000.0)], now) == ({pod} if rests else set())
