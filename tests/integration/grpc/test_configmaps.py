"""The gRPC API on ConfigMaps that other clients write, too, and that fill up."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from reserver.reservations.reservation import Ref
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import spec
from tests.integration.world import CONFIGMAPS, SYSTEM, World, serving
from tests.waiting import until


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path) as world:
        yield world


async def test_entries_that_managers_write_are_shown_and_released(world: World) -> None:
    item = {"pod": "web-9", "namespace": "shop", "cpu": 1000, "mem": 0, "expire": 4_000_000_000}
    body = {
        "metadata": {"name": "lists", "labels": {"reserver.io/store": "true"}},
        "data": {"worker-1": json.dumps([item, item | {"pod": "web-8"}])},
    }
    await world.cluster.client.send("POST", CONFIGMAPS, body)
    name = f"{SYSTEM}/lists/worker-1[shop/web-9]"
    async for change in world.api.Watch(pb.WatchRequest()):
        if change.reservation.id == name:
            break
    found = (await world.api.Get(pb.GetRequest(name=name))).reservation
    assert found.spec.owners[0].pod.name == "web-9"
    assert found.spec.resources == {"cpu": "1", "pods": "1"}
    await world.api.Release(pb.ReleaseRequest(name=name))
    assert "web-9" not in (await world.data("lists"))["worker-1"]
    assert "web-8" in (await world.data("lists"))["worker-1"]


async def test_a_configmap_of_the_name_that_is_no_store_is_left_alone(world: World) -> None:
    body = {"metadata": {"name": "reservations"}, "data": {"mine": "1"}}
    await world.cluster.client.send("POST", CONFIGMAPS, body)
    with pytest.raises(grpc.aio.AioRpcError, match="lacks the label"):
        await world.api.Create(pb.CreateRequest(name="first", spec=spec()))
    assert not len(world.running.assembly.ledger)
    assert await world.data() == {"mine": "1"}


async def test_a_full_configmap_is_followed_by_another(world: World) -> None:
    filler = {f"filler-{index}": f"# {'x' * 60_000}" for index in range(15)}
    body = {
        "metadata": {"name": "reservations", "labels": {"reserver.io/store": "true"}},
        "data": filler,
    }
    await world.cluster.client.send("POST", CONFIGMAPS, body)
    stores = world.running.assembly.stores
    refs = [Ref(SYSTEM, "reservations", key) for key in filler]
    await until(lambda: all(map(stores.latest, refs)))
    wanted = spec()
    wanted.owners.extend(pb.Owner(pod=pb.PodOwner(name=f"{'x' * 200}-{n}")) for n in range(200))
    await world.api.Create(pb.CreateRequest(name="first", spec=wanted))
    assert list(await world.data("reservations-2")) == ["first"]
    assert (await world.api.Get(pb.GetRequest(name="first"))).reservation.status.backed


async def test_fields_of_a_newer_version_survive_extend_and_update(world: World) -> None:
    owner = {"pod": {"name": "web-0", "namespace": "shop"}}
    entry = {"owners": [owner], "node": "worker-1", "resources": {"cpu": "1"}, "tenancy": {"a": 1}}
    closed = entry | {"owners": [owner, {"pod": {"name": "web-1"}, "tier": "gold"}]}
    body = {
        "metadata": {"name": "newer", "labels": {"reserver.io/store": "true"}},
        "data": {"first": json.dumps(entry), "closed": json.dumps(closed)},
    }
    await world.cluster.client.send("POST", CONFIGMAPS, body)
    name = f"{SYSTEM}/newer/first"
    async for change in world.api.Watch(pb.WatchRequest()):
        if change.reservation.id == name:
            break
    assert "does not know the field: tenancy" in change.reservation.status.message
    later = pb.ExtendRequest(name=name)
    later.ttl.FromSeconds(7200)
    await world.api.Extend(later)
    wanted = spec()
    wanted.description = "the same, in words"
    await world.api.Update(pb.UpdateRequest(name=name, spec=wanted))
    written = json.loads((await world.data("newer"))["first"])
    assert (written["tenancy"], written["description"]) == ({"a": 1}, "the same, in words")
    with pytest.raises(grpc.aio.AioRpcError, match=r"owners\[1\].tier: of a newer version"):
        await world.api.Update(pb.UpdateRequest(name=f"{SYSTEM}/newer/closed", spec=wanted))
