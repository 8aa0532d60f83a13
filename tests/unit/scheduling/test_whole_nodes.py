"""Whole nodes: nobody but owners, and the pods that belong to the node, is bound there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.constraints import Toleration
from reserver.cluster.node import Node
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod
from reserver.extender.placer import Placer
from reserver.process.hold_metrics import take
from reserver.reservations.accounts import HoldUse, measured
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Part
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling import slot_nodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.closures import Closure
from reserver.scheduling.dry_run import judge_set
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.resize import judge_resize
from reserver.stores.codec.spec_codec import read
from tests.builders import NOW, node, pod, ref, reservation, state_of
from tests.steps import lines
from tests.unit.extender.test_placer import World

GPU = {"pool": "gpu"}
G1, G2 = (node(name, labels=GPU, cpu="4", memory="8Gi") for name in ("g1", "g2"))
W1 = node("w1", cpu="4")
AGENT = Controller("DaemonSet", "agent")
SPEC: dict[str, Any] = {
    "owners": [{"selector": {"matchLabels": {"app": "train"}}}],
    "nodes": {"count": 1, "selector": GPU},
    "ttl": 0,
}


def owner(name: str, cpu: str = "1", **more: Any) -> Pod:
    return pod(name, labels={"app": "train"}, cpu=cpu, **more)


async def placed(*things: Node | Pod, **more: Any) -> World:
    """Return a world with such a reservation where it is placed, and written."""
    world = World(*(each for each in things if isinstance(each, Node)))
    for each in things:
        if isinstance(each, Pod):
            world.state.pod_seen(each)
    world.write(r=SPEC | more)
    await world.look()
    if world.placed():
        world.make()
    return world


def may(asking: Pod, on: str, world: World) -> bool:
    """Return what Filter says of a node, after seeing that Bind says the same."""
    verdict = filter_nodes(asking, [on], world.state, NOW)
    assert bool(verdict.nodes) == (judge_bind(asking, on, world.state, NOW).refusal is None)
    return bool(verdict.nodes)


def bind(asking: Pod, on: str, world: World) -> Pod:
    """Bind a pod as Bind does, and show it."""
    verdict = judge_bind(asking, on, world.state, NOW)
    assert verdict.refusal is None
    world.state.assume(asking, on, verdict.claims)
    world.state.confirm(asking.uid)
    bound = replace(asking, node=on, claims=frozenset(verdict.claims), revision=world.revision)
    world.state.pod_seen(bound)
    return bound


def status(world: World) -> ReservationState:
    return ShortNodes.of(world.state.snapshot).status(world.reservation(), world.state.ledger)


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
    assert not may(owner("c"), "g1", world)  # It is full.
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
    assert not may(pod("s"), "g1", world)  # kube-scheduler may know already that it is gone.


@pytest.mark.parametrize("beside", [(), (owner("o", node="g1"),)], ids=["alone", "by an owner"])
async def test_it_waits_for_a_node_without_strangers_and_takes_it_then(
    beside: tuple[Pod, ...],
) -> None:
    there = pod("s", node="g1")
    world = await placed(G1, W1, there, *beside)
    assert world.placed() == {}
    assert (world.phase(), status(world).reason) == (Phase.PENDING, "NotPlaced")
    assert "1 node(s) had pods beside those of DaemonSets" in status(world).message
    assert may(pod("t"), "g1", world)
    world.state.pod_gone(there.name)
    await world.look()
    assert (world.placed(), world.phase()) == ({"g1": 1}, Phase.ACTIVE)
    world.make()
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)


JOB = {"controller": {"kind": "Job", "name": "train"}}
OF_JOB, OF_ANOTHER = (Controller("Job", name) for name in ("train", "other"))


@pytest.mark.parametrize(
    ("owners", "there", "expected"),
    [
        pytest.param(SPEC["owners"], owner("o", node="g2"), "g2", id="by labels"),
        pytest.param([JOB], pod("o", node="g2", controller=OF_JOB), "g2", id="by controller"),
        pytest.param([JOB], pod("o", node="g2", controller=OF_ANOTHER), "g1", id="another's"),
        pytest.param(SPEC["owners"], owner("o", namespace="x", node="g2"), "g1", id="elsewhere"),
    ],
)
async def test_owners_that_run_already_keep_no_node_from_being_held_for_them(
    owners: list[Any], there: Pod, expected: str
) -> None:
    world = await placed(G1, G2, there, owners=owners)
    assert world.placed() == {expected: 1}
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)
    assert not may(pod("s"), expected, world)
    both = await placed(G1, G2, there, owners=owners, nodes={"count": 2, "selector": GPU})
    assert set(both.placed()) == ({"g1", "g2"} if expected == "g2" else set())


async def test_a_node_is_used_by_owners_that_were_there_before() -> None:
    world = await placed(G1, owner("o", node="g1"), releaseIfIdle="10m")
    world.state.ledger.past.end()
    held = measured(world.reservation(), world.state.ledger)
    assert [*held][:3] == ["nodes", "cpu", "memory"]
    assert (held["nodes"], held["cpu"]) == (HoldUse(used=1), HoldUse(spare=3000, used=1000))
    world.state.ledger.advance(NOW + 3600)
    assert world.phase() is Phase.ACTIVE
    world.state.pod_gone(owner("o").name)
    held = measured(world.reservation(), world.state.ledger)
    assert (held["nodes"], held["cpu"]) == (HoldUse(free=1), HoldUse(free=4000))
    census = outcome(take(world.state.snapshot, world.state.ledger, ["cpu"]))
    assert census.held["cpu"] == {"shop": 4000}
    world.state.ledger.advance(NOW + 7200)
    assert world.phase() is Phase.EXPIRED


async def test_of_too_many_pods_none_is_asked_who_controls_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slot_nodes, "MOST_ASKED", 1)
    there = [pod(name, node=on, controller=OF_JOB) for name, on in (("a", "g1"), ("b", "g2"))]
    world = await placed(G1, G2, *there, owners=[JOB])
    assert world.placed() == {"g1": 1}
    assert slot_nodes.strangers(world.reservation().rules, world.state.snapshot).sum() == 1
    by_labels = await placed(G1, G2, owner("a", node="g1"), owner("b", node="g2"))
    assert not slot_nodes.strangers(by_labels.reservation().rules, by_labels.state.snapshot).any()


def test_a_set_is_judged_beside_the_owners_that_run_there() -> None:
    state = state_of(G1, owner("o", node="g1"))
    whole = read(SPEC, ref("r"), NOW)
    verdict = outcome(judge_set([whole], state, lambda: NOW))
    assert (verdict.lacks, verdict.reservations[0].placed) == ((), (Part("g1", 1),))
    twice = outcome(judge_set([whole, replace(whole, ref=ref("s"))], state, lambda: NOW))
    assert [lack.at for lack in twice.lacks] == [1]
    state.pod_seen(pod("s", node="g1"))
    assert outcome(judge_set([whole], state, lambda: NOW)).lacks


async def test_of_several_nodes_it_takes_all_or_none() -> None:
    two = {"nodes": {"count": 2, "selector": GPU}}
    world = await placed(G1, W1, pod("s", node="w1"), **two)
    assert world.placed() == {}
    assert "there is room for 1 of 2 nodes; 1/2" in status(world).message
    world.state.node_seen(G2)
    await world.look()
    assert world.placed() == {"g1": 1, "g2": 1}


async def test_nodes_with_holds_or_to_be_maintained_or_cordoned_are_left_out() -> None:
    world = World(G1, G2)
    world.state.ledger.put(reservation("x", node="g1", cpu="1"))
    world.state.closures.set({Closure("being maintained"): frozenset({"g2"})})
    world.write(r=SPEC)
    await world.look()
    assert world.placed() == {}
    assert "1 capacity held by reservations" in status(world).message
    assert "1 node(s) being maintained" in status(world).message


async def test_nothing_else_is_placed_on_it() -> None:
    world = await placed(G1, W1)
    small = {"owners": SPEC["owners"], "resources": {"cpu": "1"}, "ttl": 0}
    world.write(other=small | {"placement": {"nodeSelector": GPU}}, again=SPEC)
    await world.look()
    assert world.placed("other") == {}
    assert world.placed("again") == {}


async def test_what_names_it_gets_nothing_of_it() -> None:
    world = await placed(G1, W1)
    late = reservation("late", node="g1", owners=("z",), cpu="1")
    world.state.ledger.put(late)
    short = ShortNodes.of(world.state.snapshot)
    assert not short.status(late, world.state.ledger).is_backed
    assert status(world).is_backed
    assert not may(pod("z", cpu="1"), "g1", world)


async def test_it_grows_and_shrinks_with_its_node() -> None:
    world = await placed(G1, W1)
    cpu = world.state.snapshot.amounts
    assert cpu("g1", "cpu").held == 4000
    world.state.node_seen(node("g1", labels=GPU, cpu="6"))
    assert cpu("g1", "cpu").held == 6000
    world.state.pod_seen(pod("agent", node="g1", cpu="1", controller=AGENT))
    assert cpu("g1", "cpu").held == 5000
    world.write(r=None)
    assert cpu("g1", "cpu").held == 0
    assert may(pod("s", cpu="5"), "g1", world)


async def test_a_node_that_goes_is_replaced_by_another() -> None:
    world = await placed(G1, G2)
    first = next(iter(world.placed()))
    bind(owner("a"), first, world)
    world.state.node_gone(first)
    await world.look()
    assert set(world.placed()) == {"g1", "g2"} - {first}


async def test_a_pod_that_others_bind_there_is_reported_and_then_forgotten() -> None:
    world = await placed(G1)
    forced = pod("forced", node="g1")
    world.state.pod_seen(forced)
    assert (status(world).is_backed, status(world).reason) == (False, "NotEnoughRoom")
    assert "g1 runs pods of others" in status(world).message
    world.state.pod_gone(forced.name)
    assert status(world).is_backed


async def test_an_edit_keeps_the_node_with_the_owners_that_are_there() -> None:
    world = await placed(G1, G2)
    (on,) = world.placed()
    bind(owner("a"), on, world)
    world.write(r=SPEC | {"policy": "Require", "placements": [{"node": on, "slots": 1}]})
    await world.look()
    assert world.placed() == {on: 1}
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)


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


async def test_it_ends_at_its_time_only() -> None:
    world = await placed(G1, ttl="1h")
    bind(owner("a"), "g1", world)
    world.state.ledger.advance(NOW + 3600)
    assert world.phase() is Phase.EXPIRED
    verdict = filter_nodes(pod("s"), ["g1"], world.state, NOW + 3600)
    assert verdict.nodes == ["g1"]


async def test_explain_names_it_and_counts_nothing_of_it_against_owners() -> None:
    world = await placed(G1)
    stranger = explain(pod("s"), world.state, NOW)
    assert stranger.summary == "0/1 nodes are available: 1 capacity held by reservations."
    assert [each.reservation for each in stranger.in_the_way] == ["shop/store/r"]
    mine = explain(owner("a"), world.state, NOW)
    assert mine.available == 1
    assert mine.nodes_with_holds[0].resources["cpu"].held_for_others == 0


async def test_tolerations_let_it_have_tainted_nodes() -> None:
    tainted = {"placement": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}}
    world = await placed(G1, **tainted)
    assert world.reservation().placement.constraints.tolerations == (
        Toleration("gpu", "Exists", "", ""),
    )
    assert world.placed() == {"g1": 1}


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


async def test_a_start_knows_what_was_held_from_the_entry_and_the_pods() -> None:
    before = await placed(G1, G2)
    (on,) = before.placed()
    bound = bind(owner("a"), on, before)
    after = World(G1, G2)
    after.data, after.revision = dict(before.data), before.revision
    after.write()
    after.state.pod_seen(bound)
    await after.look()
    assert after.placed() == {on: 1}
    assert not may(pod("s"), on, after)
    assert may(owner("b"), on, after)
    assert status(after).is_backed
    assert after.state.ledger.claimed(after.reservation().ref) == 1


async def test_an_occurrence_keeps_out_who_comes_while_those_before_run_on() -> None:
    again = {"schedule": {"cron": "0 22 * * *", "duration": "8h"}, "ttl": None}
    world = await placed(G1, **{key: value for key, value in again.items() if value})
    assert world.placed() == {}
    (begin, end) = world.reservation().next_occurrences[0][:2]
    world.now = begin
    world.state.ledger.advance(begin)
    await world.look()
    assert world.placed() == {"g1": 1}
    world.make()
    world.now = end
    world.state.ledger.advance(end)
    world.state.pod_seen(pod("late", node="g1"))
    world.now = begin + 24 * 3600
    world.state.ledger.advance(world.now)
    await world.look()
    assert world.placed() == {"g1": 1}
    assert (status(world).is_backed, status(world).reason) == (False, "NotEnoughRoom")
    assert not filter_nodes(pod("s"), ["g1"], world.state, world.now).nodes
    world.state.pod_gone(pod("late").name)
    assert status(world).is_backed


async def test_it_is_released_once_no_owner_has_been_there_for_so_long() -> None:
    world = await placed(G1, releaseIfIdle="10m")
    world.state.ledger.past.end()
    bound = bind(owner("a"), "g1", world)
    world.state.ledger.advance(NOW + 3600)
    assert world.phase() is Phase.ACTIVE
    world.state.pod_gone(bound.name)
    world.state.ledger.advance(NOW + 3600 + 601)
    assert world.phase() is Phase.EXPIRED
    assert filter_nodes(pod("s"), ["g1"], world.state, NOW + 4201).nodes == ["g1"]


def test_a_call_costs_the_same_however_many_nodes_are_held_whole() -> None:
    def cost(count: int) -> int:
        free = [node(f"f{number}", cpu="4") for number in range(150)]
        nodes = [node(f"n{number}", cpu="4") for number in range(count)]
        holds = [
            replace(
                reservation(f"r{number}", node="", placed={f"n{number}": 1}, reusable=True),
                resources={"nodes": 1},
            )
            for number in range(count)
        ]
        state = state_of(*free, *nodes, *holds)
        names = [each.name for each in (*nodes[:10], *free)]
        asking = pod("s", cpu="1")
        assert len(filter_nodes(asking, names, state, NOW).nodes) == 100
        return lines(lambda: filter_nodes(asking, names, state, NOW))

    assert cost(500) == cost(20)
