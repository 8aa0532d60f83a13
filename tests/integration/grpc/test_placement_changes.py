"""Updates and extensions of placed reservations: their nodes stay if they may."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import grpc
import pytest

from reserver.client import Client, Nodes, OwnerSelector, Phase, Spec
from reserver.errors import ApiError
from reserver.stores.edits import Edit
from reserver.stores.stores import Stores
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import create, create_set, get, parts, placeless, refused, spec
from tests.integration.grpc.test_placement import SPREAD
from tests.integration.world import World
from tests.waiting import until_answered

ON_THE_SECOND = pb.Placement(node_selector={"kubernetes.io/hostname": "worker-2"})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (placeless("2"), {"worker-1": 1}),
        (placeless("4"), {"worker-2": 1}),
        (spec(node="worker-2", cpu="2"), {"worker-2": 1}),
        (placeless("2", placement=SPREAD), {"worker-1": 1}),
        (placeless("2", placement=ON_THE_SECOND), {"worker-2": 1}),
    ],
    ids=["less", "more than there is room for", "a node", "a strategy", "a placement elsewhere"],
)
async def test_update_keeps_the_place_if_it_may(
    world: World, wanted: Any, expected: dict[str, int]
) -> None:
    async def is_there() -> bool:  # It is Pending while it is moved.
        found = await get(world, "second")
        return found.status.backed and parts(found) == expected

    await create(world, "first", spec(node="worker-1", cpu="1"))
    assert parts(await create(world, "second", placeless("3"))) == {"worker-1": 1}
    await world.api.Update(pb.UpdateRequest(name="second", spec=wanted))
    await until_answered(is_there)


async def test_extend_keeps_the_place_and_says_so(world: World) -> None:
    before = parts(await create(world, "one", placeless("3")))
    longer = pb.ExtendRequest(name="one", ttl=timedelta(hours=9))
    after = (await world.api.Extend(longer)).reservation
    assert after.status.phase == pb.PHASE_ACTIVE
    assert parts(after) == before


async def test_update_beyond_all_room_is_refused(world: World) -> None:
    await create(world, "first", placeless("3"))
    await create(world, "second", placeless("3"))
    request = pb.UpdateRequest(name="second", spec=placeless("3", slots=2))
    code, reason, _ = await refused(world.api.Update(request))
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM")
    assert len(parts(await get(world, "second"))) == 1


async def test_whole_nodes_are_held_over_grpc_and_extended_while_they_are_used(
    world: World,
) -> None:
    owners = [OwnerSelector(namespace="shop", match_labels={"app": "train"})]
    wanted = Spec(owners=owners, nodes=Nodes(2, {}))
    address = world.running.grpc_address
    assert address is not None
    async with Client(address) as client:
        made = await client.create("train", wanted)
        assert (made.phase, made.is_backed) == (Phase.ACTIVE, True)
        assert {part.node for part in made.placements} == {"worker-1", "worker-2"}
        assert made.spec.nodes == wanted.nodes
        fit = await client.capacity.what_if([wanted])
        assert "2 capacity held by reservations" in fit.shortages[0].message
        later = await client.extend("train", timedelta(hours=48))
        assert later.spec.expires_at is not None
        assert [part.node for part in later.placements] == [p.node for p in made.placements]


@pytest.mark.parametrize("fails", [False, True], ids=["written", "refused"])
async def test_room_that_was_found_for_an_update_is_nobody_elses_while_it_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """A watch shows the update only later; a set that is created meanwhile is all backed."""
    begun, may_end, edit = asyncio.Event(), asyncio.Event(), Stores.edit

    async def late(stores: Stores, wanted: Edit) -> bool:
        begun.set()
        await may_end.wait()
        if fails:
            raise ApiError(403, "Forbidden", "a policy says no")
        return await edit(stores, wanted)

    await create(world, "first", spec(node="worker-1", cpu="1"))
    monkeypatch.setattr(Stores, "edit", late)
    wanted = spec(node="worker-1", cpu="3")

    async def update() -> Any:
        return await world.api.Update(pb.UpdateRequest(name="first", spec=wanted))

    updating = asyncio.create_task(update())
    await begun.wait()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await create_set(world, second=spec(node="worker-1", cpu="3"))
    assert "too little cpu" in str(caught.value.details())
    may_end.set()
    await asyncio.wait([updating])
    assert isinstance(updating.exception(), grpc.aio.AioRpcError) is fails
    snapshot = world.running.assembly.state.snapshot
    assert snapshot.amounts("worker-1", "cpu").requested == 0
    assert snapshot.amounts("worker-1", "cpu").held == (1000 if fails else 3000)
    if fails:
        (made,) = await create_set(world, second=spec(node="worker-1", cpu="3"))
        assert made.status.backed
