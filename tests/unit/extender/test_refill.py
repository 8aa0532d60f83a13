"""Reservations that replace a claimed slot: so many stay free, where there is room."""

import json
from typing import Any

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.enums import Phase
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import NOT_YET, Written
from reserver.reservations.status import NOT_REFILLED, ReservationState, ShortNodes
from reserver.stores.object.status_codec import summary
from tests.builders import held, node, parts, pod, ref, reservation, state_of
from tests.unit.extender.placer.world import World

W1, W2 = node("w1", cpu="4"), node("w2", cpu="4")
SPEC: dict[str, Any] = {
    "owners": [{"selector": {"matchLabels": {"app": "web"}}}],
    "resources": {"cpu": "2"},
    "slots": 2,
    "refill": True,
    "ttl": 0,
}


async def refilled(*nodes: Node, **more: Any) -> World:
    """Return a world with a refilled reservation whose place is stored."""
    world = World(*nodes)
    world.write(r=SPEC | more)
    await world.look()
    world.make()
    return world


def claim(world: World, name: str, on: str) -> Pod:
    """Bind an owner onto a slot, as Bind does."""
    owner = pod(name, cpu="2", labels={"app": "web"})
    world.state.assume(owner, on, (world.reservation().identity,))
    bound = pod(name, node=on, cpu="2", labels={"app": "web"}, claims=[world.reservation()])
    world.state.pod_seen(bound)
    return bound


def free(world: World) -> dict[str, int]:
    """Return the held slots, by node."""
    return {each: n // 2000 for each in ("w1", "w2") if (n := held(world.state, each))}


def status(world: World) -> ReservationState:
    return ShortNodes.of(world.state.snapshot).status(world.reservation(), world.state.ledger)


async def test_a_claimed_slot_is_replaced_where_there_is_room() -> None:
    world = await refilled(W1, W2)
    assert free(world) == {"w1": 2}
    claim(world, "a", "w1")
    assert free(world) == {"w1": 1}
    await world.look()
    assert free(world) == {"w1": 1, "w2": 1}
    assert (world.phase(), status(world).is_backed) == (Phase.ACTIVE, True)


async def test_without_room_it_holds_what_it_has_and_says_what_is_missing() -> None:
    world = await refilled(W1)
    claim(world, "a", "w1")
    await world.look()
    assert free(world) == {"w1": 1}
    assert world.phase() is Phase.ACTIVE
    assert (status(world).is_backed, status(world).reason) == (True, NOT_REFILLED)
    assert "a claimed slot is not replaced: 0/1 nodes" in status(world).message
    world.state.node_seen(W2)
    await world.look()
    assert free(world) == {"w1": 1, "w2": 1}


async def test_as_many_are_placed_as_there_is_room_for() -> None:
    world = World(node("w1", cpu="2"))
    world.write(r=SPEC)
    await world.look()
    await world.look()
    assert free(world) == {"w1": 1}
    assert world.phase() is Phase.ACTIVE


async def test_it_never_holds_more_than_its_slots_when_claims_end() -> None:
    world = await refilled(W1, W2)
    gone = claim(world, "a", "w1")
    await world.look()
    world.state.pod_gone(gone.name)
    assert sum(free(world).values()) == 2
    await world.look()
    assert sum(world.placed().values()) == 2  # The stored placement shrinks as well.


async def test_a_place_of_another_reserver_stays_until_its_claim_may_be_known() -> None:
    """Reserver bound an owner and replaced the slot; the store is read before the binding."""
    world = await refilled(W1, W2)
    there = [{"node": "w1", "slots": 2}, {"node": "w2", "slots": 1}]
    world.write(r=json.loads(world.data["r"]) | {"placements": there})
    await world.look()
    assert world.placed() == {"w1": 2, "w2": 1}
    claim(world, "a", "w1")
    await world.look()
    assert world.placed() == {"w1": 2, "w2": 1}
    assert free(world) == {"w1": 1, "w2": 1}


async def test_a_place_too_many_is_given_back_once_all_claims_are_known() -> None:
    world = await refilled(W1, W2)
    there = [{"node": "w1", "slots": 2}, {"node": "w2", "slots": 1}]
    world.state.pods_shown(world.revision + 1)
    world.write(r=json.loads(world.data["r"]) | {"placements": there})
    await world.look()
    assert world.placed() == {"w1": 2}


async def test_no_more_are_replaced_than_it_says() -> None:
    world = await refilled(W1, W2, refillUpTo=3)
    for name, on in (("a", "w1"), ("b", "w1")):
        claim(world, name, on)
        await world.look()
    assert free(world) == {"w2": 1}
    last = claim(world, "c", "w2")
    await world.look()
    assert (free(world), world.phase()) == ({}, Phase.CLAIMED)
    world.make()  # The node is stored; the reservation is not over: a claim may end.
    world.state.pod_gone(last.name)
    await world.look()
    assert sum(free(world).values()) == 1


@pytest.mark.parametrize("first", ["entry", "pods"])
async def test_a_start_knows_which_slots_were_claimed_whatever_it_sees_first(first: str) -> None:
    world = await refilled(W1, W2)
    bound = claim(world, "a", "w1")
    await world.look()
    world.make()
    said = json.loads(world.data["r"])
    again = World(W1, W2)
    if first == "entry":
        again.write(r=said)
    again.state.pod_seen(bound)
    if first == "pods":
        again.write(r=said)
    assert free(again) == free(world) == {"w1": 1, "w2": 1}
    await again.look()
    assert again.placed() == world.placed()
    assert bound.uid in again.state.ledger.claims(ref("r"))


async def test_what_is_told_of_it_counts_claimed_and_free_slots() -> None:
    world = await refilled(W1, W2)
    for name, on in (("a", "w1"), ("b", "w1"), ("c", "w2")):
        claim(world, name, on)
        await world.look()
    assert summary(world.reservation(), 3).claimed == "3/5"
    ending = Ending.of(world.reservation(), world.state.ledger, world.now)
    assert str(ending).startswith("removed with 3 of 5 slots claimed by ")


def test_a_place_that_came_with_the_reservation_is_given_back_as_any_other() -> None:
    """This Reserver places a reservation from gRPC before the write, and sees all claims."""
    ledger = state_of(W1, W2).ledger
    there = {"w1": 2, "w2": 1}
    made = reservation("r", node="", placed=there, slots=2, refill_up_to=10, cpu="2")
    ledger.put(made, NOT_YET)
    ledger.put(made, Written(7, 7))
    assert ledger.compact(ref("r"), lambda revision: revision <= 7) == parts({"w1": 2})
