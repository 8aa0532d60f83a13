"""A tenant edits the seat of a move."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.unit.moves.api_server import PODS, SEATS
from tests.unit.moves.test_closing import BLOCKED, until
from tests.unit.moves.world import World


def edit(world: World, **spec: Any) -> None:
    """Edit the spec of the seat."""
    seat = deepcopy(world.api.of(SEATS)[0])
    seat["spec"] |= spec
    seat["metadata"]["generation"] += 1
    world.api.put(SEATS, seat)


def replacing(uid: str) -> list[dict[str, Any]]:
    return [{"controller": {"kind": "ReplicaSet", "name": "web"}, "replaces": {"uid": uid}}]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"owners": [{"pod": {"name": "other"}}]}, "owners"),
        ({"owners": replacing("somebody")}, "owners"),
        ({"resources": {"cpu": "1m", "pods": "1"}}, "less"),
        ({"resources": {"cpu": "1999m", "memory": "1Gi"}}, "less"),
    ],
)
async def test_nobody_is_evicted_for_a_seat_that_was_edited(
    spec: dict[str, Any], said: str
) -> None:
    world = World()
    await world.start()
    world.move()
    world.api.refusals = [BLOCKED] * 9
    await until(world, "Evicting", "BudgetBlocks")
    edit(world, **spec)
    sent = len(world.evictions)
    status = await world.settle(rounds=6)
    assert (status["phase"], status["reason"]) == ("Failed", "SeatImpossible")
    assert said in status["message"]
    assert (len(world.evictions), world.nodes_of("web")) == (sent, ["worker-1"])


@pytest.mark.parametrize("resources", [{"cpu": "2", "pods": "1"}, {"cpu": "3", "pods": "2"}])
async def test_a_seat_that_holds_enough_is_used(resources: dict[str, str]) -> None:
    world = World()
    await world.start()
    world.move()
    world.api.refusals = [BLOCKED]
    await until(world, "Evicting", "BudgetBlocks")
    edit(world, resources=resources)
    assert (await world.settle())["reason"] == "Landed"


async def test_the_seat_of_a_pod_without_a_node_has_that_pod_as_its_owner() -> None:
    world = World()
    await world.start()
    world.replicas, world.schedules = 2, False
    world.make_pod()
    world.move("web-1")
    await until(world, "Reserving", "WaitsForPod")
    edit(world, owners=[{"pod": {"name": "other"}}])
    assert (await world.settle(rounds=6))["reason"] == "SeatImpossible"
    assert f"{PODS}/web-1" in world.api.objects
