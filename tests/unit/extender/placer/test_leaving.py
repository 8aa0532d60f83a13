"""Reservations leave a node that is deleted, or that is vacated for maintenance."""

import json
from dataclasses import replace

import pytest

from reserver.cluster.labels import equals
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.placement import ANYWHERE
from reserver.reservations.reservation import Reservation
from tests.builders import demanding, held, node, pod, ref, reservation
from tests.unit.extender.placer.world import BIG, SMALL, SPEC, VACATED, World, closed, looked_at


async def test_it_is_moved_when_its_node_goes_and_comes_back_if_that_does() -> None:
    world = await looked_at(SMALL, r=SPEC)
    world.make()
    world.state.node_gone("small")
    await world.look()
    assert world.phase() is Phase.PENDING
    assert "no nodes available" in world.state.ledger.obstacle(ref("r"))
    world.state.node_seen(SMALL)
    await world.look()
    assert world.phase() is Phase.ACTIVE
    world.state.node_gone("small")
    world.state.node_seen(BIG)
    await world.look()
    assert world.placed() == {"big": 1}
    world.make()
    assert json.loads(world.data["r"])["placements"] == [{"node": "big", "slots": 1}]


async def test_one_leaves_a_node_that_is_vacated_and_does_not_come_back() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC)
    await closed(world, small=VACATED)
    assert world.placed() == {"big": 1}
    assert held(world.state, "small") == 0
    await closed(world)
    assert world.placed() == {"big": 1}


async def test_one_stays_on_a_vacated_node_until_there_is_another_place() -> None:
    world = await looked_at(SMALL, r=SPEC)
    await closed(world, small=VACATED)
    assert world.placed() == {"small": 1}
    assert world.phase() is Phase.ACTIVE
    assert held(world.state, "small") == 3000
    world.state.node_seen(BIG)
    await world.look()
    assert world.placed() == {"big": 1}


def seat_in_zone(key: str) -> Reservation:
    """Return a seat in zone a whose pod may be anywhere."""
    placement = demanding(node_selector=equals({"zone": "a"}))
    made = reservation(key, node="", owners=(key,), placement=placement, cpu="4")
    return identified(replace(made, is_seat=True, fallback=ANYWHERE))


@pytest.mark.parametrize("fails", [False, True])
async def test_a_seat_that_moves_while_it_is_claimed_holds_its_new_place(*, fails: bool) -> None:
    """The binding that claims the seat may still fail."""
    world = World(node("a", cpu="4", labels={"zone": "a"}), node("b", cpu="4"))
    world.state.ledger.put(seat_in_zone("r"))
    await world.look()
    owner = pod("r", cpu="4")
    world.state.pod_seen(owner)
    world.state.assume(owner, "a", (world.reservation().identity,))
    world.state.node_gone("a")
    world.placer.unsuited(ref("r"), anywhere=True)
    await world.look()
    assert world.placed() == {"b": 1}
    assert held(world.state, "b") == 4000
    (world.state.forget if fails else world.state.confirm)(owner.uid)
    await world.look()
    assert world.placed() == {"b": 1}
    assert held(world.state, "b") == 4000 * fails


async def test_a_seat_that_may_be_anywhere_goes_on_from_place_to_place() -> None:
    """The pod of the seat was evicted for the seat."""
    world = World(node("a", cpu="4", labels={"zone": "a"}))
    world.state.ledger.put(seat_in_zone("r"))
    await world.look()
    assert world.placed() == {"a": 1}
    busy = pod("busy", node="b", cpu="2")
    world.state.pod_seen(busy)
    world.placer.unsuited(ref("r"), anywhere=True)
    for there in ("b", "c"):
        world.state.node_gone(*world.placed())
        await world.look()
        world.state.node_seen(node(there, cpu="4"))
        await world.look()
        world.state.pod_gone(busy.name)
        await world.look()
        assert world.placed() == {there: 1}
        world.placer.on_reservation_changed(ref("r"))  # The node is stored.
        await world.look()


async def test_a_seat_that_finds_no_place_in_its_zone_keeps_none_from_going_anywhere() -> None:
    world = World(node("a", cpu="8", labels={"zone": "a"}))
    world.state.ledger.put(replace(seat_in_zone("bound"), fallback=None))
    world.state.ledger.put(seat_in_zone("free"))
    await world.look()
    world.state.node_gone("a")
    world.state.node_seen(node("b", cpu="8"))
    world.placer.unsuited(ref("free"), anywhere=True)
    await world.look()
    assert (world.placed("bound"), world.placed("free")) == ({"a": 1}, {"b": 1})


async def test_a_claimed_slot_stays_with_its_pod_on_a_vacated_node() -> None:
    world = World(SMALL)
    world.write(
        r={**SPEC, "owners": [{"selector": {"matchLabels": {"app": "web"}}}], "slots": 2}
        | {"resources": {"cpu": "1"}}
    )
    await world.look()
    owner = pod("a", node="small", cpu="1", claims=(world.reservation(),), labels={"app": "web"})
    world.state.pod_seen(owner)
    world.state.node_seen(BIG)
    await closed(world, small=VACATED)
    assert world.placed() == {"big": 1, "small": 1}
    assert held(world.state, "small") == 0
    assert held(world.state, "big") == 1000
