"""Nodes that may be held whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.constraints import Toleration
from reserver.cluster.pod import Controller, Pod
from reserver.process.hold_metrics import take
from reserver.reservations.accounts import HoldUse, measured
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Part
from reserver.scheduling import slot_nodes
from reserver.scheduling.closures import Closure
from reserver.scheduling.dry_run import judge_set
from reserver.stores.codec.spec_codec import read
from tests.builders import NOW, pod, ref, reservation, state_of
from tests.unit.extender.placer.world import World
from tests.unit.scheduling.whole_nodes.world import (
    G1,
    G2,
    GPU,
    SPEC,
    W1,
    bind,
    may,
    owner,
    placed,
    status,
)


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


async def test_a_node_that_goes_is_replaced_by_another() -> None:
    world = await placed(G1, G2)
    first = next(iter(world.placed()))
    bind(owner("a"), first, world)
    world.state.node_gone(first)
    await world.look()
    assert set(world.placed()) == {"g1", "g2"} - {first}


async def test_an_edit_keeps_the_node_with_the_owners_that_are_there() -> None:
    world = await placed(G1, G2)
    (on,) = world.placed()
    bind(owner("a"), on, world)
    world.write(r=SPEC | {"policy": "Require", "placements": [{"node": on, "slots": 1}]})
    await world.look()
    assert world.placed() == {on: 1}
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)


async def test_tolerations_let_it_have_tainted_nodes() -> None:
    tainted = {"placement": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}}
    world = await placed(G1, **tainted)
    assert world.reservation().placement.constraints.tolerations == (
        Toleration("gpu", "Exists", "", ""),
    )
    assert world.placed() == {"g1": 1}
