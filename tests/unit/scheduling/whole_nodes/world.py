"""A world with a reservation of whole nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reserver.cluster.node import Node
from reserver.cluster.pod import Controller, Pod
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from tests.builders import NOW, node, pod
from tests.unit.extender.placer.world import World

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
    """Return a world with a reservation of whole nodes that is placed and stored."""
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
    """Return whether Filter passes a node; assert that Bind agrees."""
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
