"""Pods that may use a node that is held whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod
from reserver.extender.placer import Placer
from reserver.reservations.enums import Phase
from reserver.reservations.status import ShortNodes
from reserver.scheduling.explain import explain
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.resize import judge_resize
from tests.builders import NOW, pod, reservation
from tests.unit.extender.placer.world import World
from tests.unit.scheduling.whole_nodes.world import (
    AGENT,
    G1,
    SPEC,
    W1,
    bind,
    may,
    owner,
    placed,
    status,
)


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        pytest.param(owner("a"), True, id="an owner"),
        pytest.param(pod("b", cpu="1"), False, id="a stranger"),
        pytest.param(pod("b"), False, id="a stranger that asks for nothing"),
        pytest.param(pod("b", priority=1_000_000), False, id="an important stranger"),
        pytest.param(pod("b", cpu="1", controller=AGENT), True, id="a DaemonSet's"),
        pytest.param(pod("b", cpu="1", controller=Controller("Job", "x")), False, id="a Job's"),
    ],
)
async def test_only_owners_and_pods_of_daemon_sets_may_have_it(
    asking: Pod,
    expected: bool,  # noqa: FBT001 - of the table
) -> None:
    agent = pod("agent", node="g1", cpu="1", controller=AGENT)
    world = await placed(G1, W1, agent)
    assert world.placed() == {"g1": 1}
    assert may(asking, "g1", world) is expected
    assert may(pod("c", cpu="1"), "w1", world)


@pytest.mark.parametrize("version", ["", "v1", "apps.example.com/v1", "example.com/apps/v1"])
async def test_a_pod_that_calls_itself_a_daemon_sets_is_a_stranger(version: str) -> None:
    """The creator of a pod names its controller; the API server does not check unknown kinds."""
    forged = replace(pod("b", controller=AGENT, cpu="1"), controller_version=version)
    world = await placed(G1, W1)
    assert not may(forged, "g1", world)
    there = await placed(G1, replace(forged, node="g1"))
    assert there.placed() == {}


async def test_pods_of_a_controller_that_the_platform_names_are_as_those_of_daemon_sets() -> None:
    version = "apps.kruise.io/v1alpha1"
    agent = replace(pod("b", controller=AGENT, cpu="1"), controller_version=version)
    world = World(G1, W1)
    world.state.snapshot.residents.daemons |= {(version, "DaemonSet")}
    world.state.pod_seen(replace(agent, node="g1"))
    world.write(r=SPEC)
    await world.look()
    assert world.placed() == {"g1": 1}
    assert may(pod("c", controller=AGENT, cpu="1"), "g1", world)
    assert may(replace(agent, uid="another"), "g1", world)
    other = replace(agent, uid="another", controller_version="apps.kruise.io/v1beta1")
    assert not may(other, "g1", world)
    assert not may(replace(other, controller=Controller("CloneSet", "b")), "g1", world)


async def test_a_pod_that_its_daemon_set_has_left_behind_keeps_its_node() -> None:
    agent = pod("agent", node="g1", controller=AGENT)
    orphan = replace(agent, controller=NO_CONTROLLER, controller_version="", revision=5)
    assert (await placed(G1, agent)).placed() == {"g1": 1}
    assert (await placed(G1, agent, orphan)).placed() == {}


async def test_owners_fill_it_together_and_it_stays_theirs_when_they_go() -> None:
    world = await placed(G1, W1)
    bound = [bind(owner(name, "2"), "g1", world) for name in ("a", "b")]
    assert not may(owner("c"), "g1", world)  # The node is full.
    assert not may(pod("s"), "g1", world)
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)
    assert world.state.ledger.claimed(world.reservation().ref) == 1  # The node.
    for each in bound:
        world.state.pod_gone(each.name)
    assert world.state.ledger.claimed(world.reservation().ref) == 0
    assert (world.phase(), world.placed()) == (Phase.ACTIVE, {"g1": 1})
    assert not may(pod("s", cpu="1"), "g1", world)
    assert may(owner("c", "4"), "g1", world)


async def test_a_stranger_is_refused_also_while_owners_have_all_there_is() -> None:
    world = await placed(replace(G1, allocatable={**G1.allocatable, "pods": 1}))
    bind(owner("a", "4"), "g1", world)
    assert not may(pod("s"), "g1", world)  # kube-scheduler may already see that an owner is gone.


async def test_what_names_it_gets_nothing_of_it() -> None:
    world = await placed(G1, W1)
    late = reservation("late", node="g1", owners=("z",), cpu="1")
    world.state.ledger.put(late)
    short = ShortNodes.of(world.state.snapshot)
    assert not short.status(late, world.state.ledger).is_backed
    assert status(world).is_backed
    assert not may(pod("z", cpu="1"), "g1", world)


async def test_nobody_is_evicted_there_for_a_stranger() -> None:
    world = await placed(G1)
    victim = bind(owner("a", "4"), "g1", world)
    victims = {"g1": [victim.uid]}
    stranger = pod("s", cpu="1", priority=1000)
    assert judge_preemption(stranger, victims, world.state, NOW).nodes == ()
    important = owner("b", "2", priority=1000)
    assert judge_preemption(important, victims, world.state, NOW).nodes == ("g1",)


async def test_owners_may_grow_there() -> None:
    world = await placed(G1)
    bound = bind(owner("a"), "g1", world)
    larger = replace(bound, requests={**bound.requests, "cpu": 3000})
    assert judge_resize(larger, world.state, NOW) is None


async def test_explain_names_it_and_counts_nothing_of_it_against_owners() -> None:
    world = await placed(G1)
    stranger = explain(pod("s"), world.state, NOW)
    assert stranger.summary == "0/1 nodes are available: 1 capacity held by reservations."
    assert [each.reservation for each in stranger.in_the_way] == ["shop/store/r"]
    mine = explain(owner("a"), world.state, NOW)
    assert mine.available == 1
    assert mine.nodes_with_holds[0].resources["cpu"].held_for_others == 0


async def test_who_waits_for_room_is_sent_back_when_an_owner_goes() -> None:
    world = await placed(G1)
    bound = bind(owner("a", "4"), "g1", world)
    freed: list[str] = []

    class Freed(Placer):
        def on_capacity_freed(self, node: str) -> None:
            freed.append(node)

    world.state.listener = Freed(lambda: NOW)
    world.state.pod_gone(bound.name)
    assert freed == ["g1"]
