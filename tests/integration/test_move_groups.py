"""Groups of PodMoves beside those of other namespaces, on an embedded cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from reserver.client import Client, MoveMode, MovePhase, MoveSpec, PodMove
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.migration.move import Member
from reserver.sim.apiserver import deletion, resources, server
from reserver.sim.apiserver.resources import RESOURCES
from reserver.wire.migration import groupform
from tests.integration.test_grpc_moves import CRD, budgets
from tests.integration.world import World, serving

STRANGER = "evil"
NOWHERE = {"zone": "none"}


@pytest.fixture
def with_crds(monkeypatch: pytest.MonkeyPatch) -> None:
    files = (CRD, CRD.with_name("crd-group.yaml"))
    crds = (yaml.safe_load(file.read_text()) for file in files)
    served = (*RESOURCES, *map(resources._custom, crds), budgets())
    for module in (server, deletion):
        monkeypatch.setattr(module, "RESOURCES", served)


@pytest.fixture
async def world(with_crds: None, tmp_path: Path) -> AsyncIterator[World]:  # noqa: ARG001
    nodes = ("worker-1", "worker-2", "worker-3")
    async with serving(tmp_path, *nodes, pod_moves=True) as world:
        namespace = {"metadata": {"name": STRANGER}}
        await world.cluster.client.send("POST", "/api/v1/namespaces", namespace)
        yield world


@pytest.fixture
async def client(world: World) -> AsyncIterator[Client]:
    assert world.running.grpc_address
    async with Client(world.running.grpc_address) as client:
        yield client


async def make_pod(world: World, name: str, namespace: str = "shop", made_by: str = "web") -> str:
    """Create a pod on worker-1; return its UID."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": made_by, "uid": f"rs-{made_by}"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    owners = [owner | {"controller": True}] if made_by else []
    body = {
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {"nodeName": "worker-1", "containers": [container]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    uid: str = json.loads(await world.cluster.client.send("POST", path, body))["metadata"]["uid"]
    return uid


async def until(client: Client, namespace: str, name: str, *phases: MovePhase) -> PodMove:
    async with asyncio.timeout(20):
        async for _, move in client.moves.watch(namespace):
            if move.name == name and move.phase in phases:
                return move
    raise AssertionError


async def plan(world: World, client: Client) -> None:
    """Have shop/plan-1 hold a seat, and shop/plan-2, which has none, keep it from its eviction."""
    for number in (1, 2):
        await make_pod(world, f"web-{number}", made_by=f"web-{number}")
    moves = {
        "plan-1": MoveSpec(pod="web-1", node="worker-3"),
        "plan-2": MoveSpec(pod="web-2", node_selector=NOWHERE),
    }
    await client.moves.create("shop", moves, group="plan-7")
    await until(client, "shop", "plan-1", MovePhase.EVICTING)


async def has_gone_on(world: World, client: Client) -> None:
    """Return once a move that came after all others has had its turn."""
    await make_pod(world, "last", made_by="last")
    await client.moves.create("shop", {"last": MoveSpec(pod="last", mode=MoveMode.EVICT_ONLY)})
    await until(client, "shop", "last", MovePhase.LANDING, MovePhase.SUCCEEDED)


async def test_a_stranger_that_fails_fails_no_group_of_its_name(
    world: World, client: Client
) -> None:
    await plan(world, client)
    await make_pod(world, "mine", STRANGER, made_by="")
    await client.moves.create(STRANGER, {"spoil": MoveSpec(pod="mine")}, group="plan-7")
    await until(client, STRANGER, "spoil", MovePhase.FAILED)
    await has_gone_on(world, client)
    found = {each.name: each async for each in client.moves.list("shop", group="plan-7")}
    assert found["plan-1"].phase is MovePhase.EVICTING
    assert found["plan-2"].phase is MovePhase.RESERVING


async def test_a_stranger_has_nobody_evicted_before_the_seats_of_its_group(
    world: World, client: Client
) -> None:
    await plan(world, client)
    # Its pod is gone, so it counts as one that waits for nothing.
    await client.moves.create(STRANGER, {"plan-2": MoveSpec(pod="gone")}, group="plan-7")
    await until(client, STRANGER, "plan-2", MovePhase.ABORTED)
    await has_gone_on(world, client)
    found = {each.name: each async for each in client.moves.list("shop", group="plan-7")}
    assert found["plan-1"].phase is MovePhase.EVICTING
    assert found["plan-1"].message == (
        "1 of the 2 moves of its group have no seat yet, shop/plan-2 among them"
    )


async def test_a_drain_of_two_namespaces_goes_as_one_group_and_leaves_no_declaration(
    world: World, client: Client
) -> None:
    spaces = ("shop", STRANGER)
    uids = {space: await make_pod(world, "web-1", space) for space in spaces}
    members = [Member(PodName(space, "drain"), uid) for space, uid in uids.items()]
    send = world.cluster.client.send
    for space, uid in uids.items():
        move = {"drain": MoveSpec(pod="web-1", pod_uid=uid)}
        await client.moves.create(space, move, group="drain-1", group_size=2, across=True)
    for space in spaces:
        assert (await until(client, space, "drain", MovePhase.PENDING)).phase is MovePhase.PENDING
    await has_gone_on(world, client)
    for space in spaces:
        waits = await client.moves.get(space, "drain")
        assert waits.message == "no PodMoveGroup drain-1 lists this PodMove and its pod"
    await send("POST", groupform.COLLECTION, groupform.manifest("drain-1", members))
    for space in spaces:
        await until(client, space, "drain", MovePhase.SUCCEEDED, MovePhase.LANDING)
    for space in spaces:
        await until(client, space, "drain", MovePhase.SUCCEEDED)
    async with asyncio.timeout(20):
        while await _is_there(world, "drain-1"):
            await has_changed(client)


async def has_changed(client: Client) -> None:
    async for _ in client.moves.watch():
        return


async def _is_there(world: World, name: str) -> bool:
    try:
        await world.cluster.client.send("GET", groupform.path(name))
    except ApiError as exc:
        if exc.is_absent:
            return False
        raise
    return True
