"""Groups of PodMoves with equal names in several namespaces, on an embedded cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.moves import manifests, podmove, podmove_group
from reserver.moves.manifests import SharedFields
from reserver.moves.model import ALONE, GroupMember, MoveGroup
from reserver.moves.phases import MoveMode, MovePhase
from tests.integration.world import World, serving

STRANGER = "evil"
NOWHERE = {"zone": "none"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    nodes = ("worker-1", "worker-2", "worker-3")
    async with serving(tmp_path, *nodes, pod_moves=True) as world:
        namespace = {"metadata": {"name": STRANGER}}
        await world.cluster.client.send("POST", "/api/v1/namespaces", namespace)
        yield world


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


async def move(  # noqa: PLR0913 - the fields of a PodMove
    world: World,
    name: str,
    pod: str,
    *,
    namespace: str = "shop",
    uid: str = "",
    group: MoveGroup = ALONE,
    mode: MoveMode = MoveMode.RESERVE_FIRST,
    labels: dict[str, str] | None = None,
) -> None:
    """Create a PodMove; with `labels`, to a node that has them."""
    metadata = {"name": name}
    asked = PodName(namespace, pod)
    body = manifests.manifest(
        asked, SharedFields(group=group), uid=uid, mode=mode, metadata=metadata
    )
    if labels:
        body["spec"]["to"] = {"nodeSelector": labels}
    await world.cluster.client.send("POST", podmove.collection(namespace), body)


async def until(world: World, namespace: str, name: str, *phases: MovePhase) -> dict[str, Any]:
    """Return the status of a PodMove once it has one of these phases."""
    async with asyncio.timeout(20):
        async for event in world.cluster.client.watch(podmove.collection(namespace), {}):
            found = json.loads(bytes(event.object))
            status: dict[str, Any] = found.get("status", {})
            if found["metadata"]["name"] == name and status.get("phase") in phases:
                return status
    raise AssertionError


async def status_of(world: World, name: str, namespace: str = "shop") -> dict[str, Any]:
    found = await world.cluster.client.send("GET", podmove.path(PodName(namespace, name)))
    status: dict[str, Any] = json.loads(found)["status"]
    return status


async def plan(world: World) -> None:
    """Have shop/plan-1 hold a seat, and shop/plan-2, which has none, keep it from its eviction."""
    for number in (1, 2):
        await make_pod(world, f"web-{number}", made_by=f"web-{number}")
    group = MoveGroup("plan-7", 2)
    await move(world, "plan-1", "web-1", group=group)
    await move(world, "plan-2", "web-2", group=group, labels=NOWHERE)
    await until(world, "shop", "plan-1", MovePhase.EVICTING)


async def has_gone_on(world: World) -> None:
    """Return once a move that came after all others has had its turn."""
    await make_pod(world, "last", made_by="last")
    await move(world, "last", "last", mode=MoveMode.EVICT_ONLY)
    await until(world, "shop", "last", MovePhase.LANDING, MovePhase.SUCCEEDED)


async def test_a_stranger_that_fails_fails_no_group_of_its_name(world: World) -> None:
    await plan(world)
    await make_pod(world, "mine", STRANGER, made_by="")
    await move(world, "spoil", "mine", namespace=STRANGER, group=MoveGroup("plan-7", 1))
    await until(world, STRANGER, "spoil", MovePhase.FAILED)
    await has_gone_on(world)
    assert (await status_of(world, "plan-1"))["phase"] == MovePhase.EVICTING
    assert (await status_of(world, "plan-2"))["phase"] == MovePhase.RESERVING


async def test_a_stranger_has_nobody_evicted_before_the_seats_of_its_group(world: World) -> None:
    await plan(world)
    # Its pod is gone, so it counts as one that waits for nothing.
    await move(world, "plan-2", "gone", namespace=STRANGER, group=MoveGroup("plan-7", 1))
    await until(world, STRANGER, "plan-2", MovePhase.ABORTED)
    await has_gone_on(world)
    status = await status_of(world, "plan-1")
    assert status["phase"] == MovePhase.EVICTING
    assert status["message"] == (
        "1 of the 2 moves of its group have no seat yet, shop/plan-2 among them"
    )


async def test_a_drain_of_two_namespaces_goes_as_one_group_and_leaves_no_declaration(
    world: World,
) -> None:
    spaces = ("shop", STRANGER)
    uids = {space: await make_pod(world, "web-1", space) for space in spaces}
    members = [GroupMember(PodName(space, "drain"), uid) for space, uid in uids.items()]
    send = world.cluster.client.send
    for space, uid in uids.items():
        group = MoveGroup("drain-1", 2, across=True)
        await move(world, "drain", "web-1", namespace=space, uid=uid, group=group)
    for space in spaces:
        await until(world, space, "drain", MovePhase.PENDING)
    await has_gone_on(world)
    for space in spaces:
        waits = await status_of(world, "drain", space)
        assert waits["message"] == "no PodMoveGroup drain-1 lists this PodMove and its pod"
    await send("POST", podmove_group.COLLECTION, podmove_group.manifest("drain-1", members))
    for space in spaces:
        await until(world, space, "drain", MovePhase.SUCCEEDED)
    listed = json.loads(await send("GET", podmove_group.COLLECTION))
    since = {"resourceVersion": listed["metadata"]["resourceVersion"]}
    changes = world.cluster.client.watch(podmove_group.COLLECTION, since)
    async with asyncio.timeout(20):
        while listed["items"] and (await anext(changes)).type != "DELETED":
            pass
