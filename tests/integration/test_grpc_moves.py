"""Moves over gRPC, on the embedded cluster with the CRD of PodMoves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from reserver.client import (
    CallFailed,
    ChangeKind,
    Client,
    MoveGroup,
    MoveMode,
    MovePhase,
    MoveSpec,
    PodMove,
)
from reserver.sim.apiserver import deletion, resources, server
from reserver.sim.apiserver.resources import RESOURCES, Resource
from reserver.v1 import move_pb2 as pb
from reserver.v1.move_pb2_grpc import MoveServiceStub
from tests.integration.test_grpc import refused
from tests.integration.world import World, serving

CRD = Path(__file__).parents[2] / "scheduler-config/components/moves/crd.yaml"
PATH = "/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"
WAITING = MoveSpec(pod="web-0", paused=True)


def budgets() -> Resource:
    """Return PodDisruptionBudgets, which moves ask; there are none."""
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodDisruptionBudget", "plural": "poddisruptionbudgets"}
    spec = {"group": "policy", "scope": "Namespaced", "names": names, "versions": [version]}
    return resources._custom({"spec": spec})


@pytest.fixture
def with_crd(monkeypatch: pytest.MonkeyPatch) -> None:
    (crd,) = yaml.safe_load_all(CRD.read_text())
    served = (*RESOURCES, resources._custom(crd), budgets())
    for module in (server, deletion):
        monkeypatch.setattr(module, "RESOURCES", served)


@pytest.fixture
async def world(with_crd: None, tmp_path: Path) -> AsyncIterator[World]:  # noqa: ARG001
    async with serving(tmp_path, pod_moves=True) as world:
        yield world


async def written(world: World) -> dict[str, Any]:
    items = json.loads(await world.cluster.client.send("GET", PATH))["items"]
    return {item["metadata"]["name"]: item for item in items}


async def failure(call: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await call
    return caught.value


async def until(client: Client, name: str, phase: MovePhase, reason: str = "") -> PodMove:
    async with asyncio.timeout(20):
        async for _, move in client.moves.watch("shop"):
            if (move.name, move.phase) == (name, phase) and reason in {"", move.reason}:
                return move
    raise AssertionError


async def test_a_move_is_written_as_its_spec_says_and_comes_back_as_it_was_sent(
    world: World, client: Client
) -> None:
    spec = MoveSpec(
        pod="web-0",
        pod_uid="u",
        node_selector={"zone": "a"},
        mode=MoveMode.EVICT_ONLY,
        timeout=timedelta(minutes=1, milliseconds=500),
        grace_period_s=0,
        paused=True,
        keep_s=3600,
    )
    (move,) = await client.moves.create("shop", {"away": spec}, request_id="r")
    assert (move.namespace, move.name, move.spec) == ("shop", "away", spec)
    item = (await written(world))["away"]
    assert item["metadata"]["annotations"] == {"reserver.io/request-id": "r"}
    assert item["spec"] == {
        "pod": {"name": "web-0", "uid": "u"},
        "to": {"nodeSelector": {"zone": "a"}},
        "mode": "EvictOnly",
        "timeout": "60.500s",
        "deleteOptions": {"gracePeriodSeconds": 0},
        "paused": True,
        "ttlSecondsAfterFinished": 3600,
    }
    found = await client.moves.get("shop", "away")
    assert (found.uid, found.spec) == (item["metadata"]["uid"], spec)


async def test_a_move_that_follows_another_comes_back_as_it_was_sent(
    world: World, client: Client
) -> None:
    spec = MoveSpec(pod="web-0", after="away", node="worker-2", timeout=timedelta(minutes=1))
    (move,) = await client.moves.create("shop", {"home": spec})
    assert (move.spec, move.pod) == (spec, "")
    item = (await written(world))["home"]
    assert item["spec"]["pod"] == {"name": "web-0", "after": "away"}
    seen = await until(client, "home", MovePhase.PENDING, "WaitsForMove")
    assert "its pod comes with the PodMove away" in seen.message


async def test_a_move_is_carried_out_as_long_as_it_is_not_paused(
    world: World, client: Client
) -> None:
    made_by = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "metadata": {"name": "web-0", "ownerReferences": [made_by | {"controller": True}]},
        "spec": {"nodeName": "worker-1", "containers": [container]},
    }
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
    (move,) = await client.moves.create("shop", {"away": WAITING})
    assert (await until(client, "away", MovePhase.PENDING, "Paused")).uid == move.uid
    resumed = await client.moves.resume("shop", "away", uid=move.uid)
    assert resumed.spec is not None
    assert not resumed.spec.paused
    held = await until(client, "away", MovePhase.EVICTING)
    assert (held.source, held.target) == ("worker-1", "worker-2")
    assert (bool(held.reservation), bool(held.started), held.is_over) == (True, True, False)
    paused = await client.moves.pause("shop", "away")
    assert paused.spec is not None
    assert paused.spec.paused


async def test_a_move_of_no_pod_ends(client: Client) -> None:
    await client.moves.create("shop", {"away": MoveSpec(pod="gone")})
    ended = await until(client, "away", MovePhase.ABORTED)
    assert (ended.reason, ended.is_over, bool(ended.finished)) == ("PodGone", True, True)


async def test_a_group_is_written_whole_or_not_at_all(world: World, client: Client) -> None:
    moves = {f"m-{number}": MoveSpec(pod=f"web-{number}") for number in range(3)}
    made = await client.moves.create("shop", moves, group="g")
    assert [each.name for each in made] == list(moves)
    assert {each.spec.group for each in made if each.spec} == {MoveGroup("g", 3)}
    again = {"m-9": WAITING, "m-1": WAITING, "m-8": WAITING}
    found = await failure(client.moves.create("shop", again, group="h"))
    assert (found.code, found.reason) == ("ALREADY_EXISTS", "NAME_TAKEN")
    assert found.fields == {"moves[1].name": "is taken"}
    assert sorted(await written(world)) == ["m-0", "m-1", "m-2"]
    listed = [each.name async for each in client.moves.list("shop", group="g")]
    assert listed == list(moves)
    phases = [MovePhase.LANDING]
    assert [each async for each in client.moves.list("shop", phases=phases)] == []
    assert [each async for each in client.moves.list("blog")] == []


async def test_a_request_that_is_repeated_moves_once(world: World, client: Client) -> None:
    both = await asyncio.gather(
        *(client.moves.create("shop", {"away": WAITING}, request_id="r") for _ in range(2))
    )
    assert both[0] == both[1]
    assert len(await written(world)) == 1
    other = await failure(client.moves.create("shop", {"b": WAITING}, request_id="r"))
    assert (other.code, list(other.fields)) == ("INVALID_ARGUMENT", ["requestId"])
    await client.moves.delete("shop", "away")
    assert await client.moves.create("shop", {"away": WAITING}, request_id="r") == both[0]
    assert not await written(world)


async def test_a_request_is_known_by_what_it_wrote_after_a_restart(
    world: World, client: Client, tmp_path: Path
) -> None:
    (move,) = await client.moves.create("shop", {"away": WAITING}, request_id="r")
    async with serving(tmp_path, pod_moves=True, cluster=world.cluster) as after:
        assert after.running.grpc_address
        async with Client(after.running.grpc_address) as second:
            (same,) = await second.moves.create("shop", {"away": WAITING}, request_id="r")
            assert same.uid == move.uid
            taken = await failure(second.moves.create("shop", {"away": WAITING}))
            assert taken.reason == "NAME_TAKEN"


async def test_what_is_called_off_is_gone(world: World, client: Client) -> None:
    (move,) = await client.moves.create("shop", {"away": WAITING})
    other = await failure(client.moves.delete("shop", "away", uid="other"))
    assert (other.code, other.reason) == ("ABORTED", "CHANGED_MEANWHILE")
    await client.moves.delete("shop", "away", uid=move.uid)
    assert not await written(world)
    assert (await failure(client.moves.get("shop", "away"))).reason == "NO_SUCH_MOVE"
    await client.moves.delete("shop", "away")
    gone = await failure(client.moves.delete("shop", "away", missing_ok=False))
    assert (gone.code, gone.reason) == ("NOT_FOUND", "NO_SUCH_MOVE")
    assert (await failure(client.moves.pause("shop", "away"))).code == "NOT_FOUND"


async def test_a_watch_tells_changes_and_is_resumed(world: World, client: Client) -> None:
    stub: Any = MoveServiceStub(world.channel)
    await client.moves.create("shop", {"a": WAITING})
    watch = stub.WatchMoves(pb.WatchMovesRequest(namespace="shop"))
    kinds = pb.WatchMovesResponse
    seen = await watch.read()
    assert (seen.kind, seen.move.name) == (kinds.KIND_ADDED, "a")
    while (seen := await watch.read()).kind != kinds.KIND_BOOKMARK:
        pass
    watch.cancel()
    await client.moves.create("shop", {"b": WAITING})
    rest = stub.WatchMoves(pb.WatchMovesRequest(namespace="shop", resume_token=seen.resume_token))

    async def is_told(kind: int) -> None:
        async with asyncio.timeout(20):
            while ((change := await rest.read()).kind, change.move.name) != (kind, "b"):
                pass

    await is_told(kinds.KIND_ADDED)
    await client.moves.delete("shop", "b")
    await is_told(kinds.KIND_DELETED)
    rest.cancel()
    old = stub.WatchMoves(pb.WatchMovesRequest(resume_token="0.1"))
    code, reason, _ = await refused(old.read())
    assert (code, reason) == (grpc.StatusCode.OUT_OF_RANGE, "TOKEN_TOO_OLD")


async def test_the_client_watches_all_namespaces(client: Client) -> None:
    await client.moves.create("shop", {"a": WAITING})
    async with asyncio.timeout(20):
        change = await anext(client.moves.watch())
    assert (change.kind, change.move.name) == (ChangeKind.ADDED, "a")


@pytest.mark.parametrize(
    ("namespace", "moves", "group", "path"),
    [
        ("Shop/x", {"a": WAITING}, "", "namespace"),
        ("", {"a": WAITING}, "", "namespace"),
        ("shop", {}, "", "moves"),
        ("shop", {f"m-{n}": WAITING for n in range(501)}, "g", "moves"),
        ("shop", {"a": WAITING, "b": WAITING}, "", "group"),
        ("shop", {"../a": WAITING}, "", "moves[0].name"),
        ("shop", {"a": MoveSpec(pod="")}, "", "moves[0].spec.pod"),
        ("shop", {"a": MoveSpec(pod="p", node="n", node_selector={"a": "b"})}, "", None),
        ("shop", {"a": MoveSpec(pod="p", timeout=timedelta(days=2))}, "", "moves[0].spec.timeout"),
        ("shop", {"a": MoveSpec(pod="p", timeout=timedelta(0))}, "", "moves[0].spec.timeout"),
        ("shop", {"a": MoveSpec(pod="p", keep_s=-1)}, "", None),
        ("shop", {"a": MoveSpec(pod="p", mode=MoveMode.EVICT_ONLY)}, "g", "moves[0].spec.group"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_written(
    world: World, client: Client, namespace: str, moves: Any, group: str, path: str | None
) -> None:
    found = await failure(client.moves.create(namespace, moves, group=group))
    assert found.code == "INVALID_ARGUMENT"
    (field,) = found.fields
    assert path in {None, field}
    assert field.startswith("moves[0].spec.") or path is not None
    assert not await written(world)


async def test_without_its_namespace_a_move_is_refused(client: Client) -> None:
    found = await failure(client.moves.create("nowhere", {"a": WAITING}))
    assert (found.code, found.reason) == ("FAILED_PRECONDITION", "REFUSED_BY_API_SERVER")


async def test_a_broken_move_is_shown_with_why(world: World, client: Client) -> None:
    spec = {"pod": {"name": "Web_0"}}
    await world.cluster.client.send("POST", PATH, {"metadata": {"name": "bad"}, "spec": spec})
    move = await until(client, "bad", MovePhase.FAILED)
    assert move.reason == "InvalidSpec"
    assert "pod.name" in move.message


async def test_who_moves_no_pods_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        assert world.running.grpc_address
        async with Client(world.running.grpc_address) as client:
            for call in (client.moves.get("shop", "a"), client.moves.delete("shop", "a")):
                found = await failure(call)
                assert (found.code, found.reason) == ("FAILED_PRECONDITION", "NO_MOVES_HERE")
                assert "--pod-moves" in found.message


async def test_without_the_crd_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RESOURCES", (*RESOURCES, budgets()))
    async with serving(tmp_path, pod_moves=True) as world:
        assert world.running.grpc_address
        async with Client(world.running.grpc_address) as client:
            found = await failure(client.moves.create("shop", {"a": WAITING}))
            assert (found.code, found.reason) == ("FAILED_PRECONDITION", "NO_MOVES_HERE")
            assert "components/moves" in found.message
