"""Companions that cannot be written, or that are too large."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from reserver.base.pacer import Pacer, outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.stores.configmap import companion_codec
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused
from tests.unit.stores.companions import COLLECTION, MISSING, World, answer, said, spec

# Faults.


@pytest.mark.parametrize("fault", [NO_ANSWER, refused(403), refused(500), b"<html>"])
async def test_a_fault_is_logged_once_and_tried_again_later_and_later(fault: Any) -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        await world.write(fault)
        assert await world.write() == []
        assert await world.write(later=0.4) == []  # Up to half of a pause is left off by chance.
        await world.write(fault, later=0.6)
        assert await world.write(later=0.9) == []
        await world.write(MISSING, answer(1), later=1.1)
    assert len(logs) == 1
    assert world.writer.writes == 1


async def test_a_fault_is_tried_again_though_the_clock_was_set_back() -> None:
    """It waited for as long as the clock was set back, and so did acknowledgements."""
    world = World()
    world.put(web=spec())
    await world.write(NO_ANSWER)
    assert len(await world.write(MISSING, answer(1), later=-3600.0)) == 2


async def test_a_companion_is_read_again_though_the_clock_was_set_back() -> None:
    world = World()
    world.put(web=spec())
    made = await world.write(MISSING, answer(1))
    there = {"metadata": made[-1].body["metadata"] | answer(1)["metadata"]}
    read = await world.write(there | {"data": made[-1].body["data"]}, later=-3600.0)
    assert [request.verb for request in read] == ["get"]


async def test_a_right_that_is_missing_is_named_with_the_manifest_that_grants_it() -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        await world.write(MISSING, refused(403))
    assert "rbac-reserver.yaml" in logs[0]["why"]


async def test_a_fault_of_one_companion_is_none_of_another() -> None:
    world = World()
    world.put(web=spec())
    metadata = Metadata(name="other", namespace="shop", uid="uid-2")
    outcome(world.store.put(ConfigMapObject(metadata=metadata, data={"api": spec()})))
    world.client = client = _ByName("store-status")
    world.writer.client = client
    await world.writer.write(world.state)
    assert client.made == ["other-status"]


class _ByName(ScriptedClient):
    """An API server without companions, which refuses one of them."""

    def __init__(self, fails: str) -> None:
        super().__init__()
        self.fails = fails
        self.made: list[str] = []

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        assert params is None
        raise NO_ANSWER if path.endswith(self.fails) else MISSING

    async def create(self, path: str, body: Any) -> bytes:
        assert path == COLLECTION
        self.made.append(body["metadata"]["name"])
        return json.dumps(answer(1)).encode()


TOO_LARGE = (
    refused(413),
    type(NO_ANSWER)(422, "Invalid", "data: Too long: may not be more than 1048576 bytes"),
    type(NO_ANSWER)(500, "", "etcdserver: request is too large"),
    type(NO_ANSWER)(500, "", "trying to send message larger than max (2639209 vs. 2097152)"),
)


@pytest.mark.parametrize("fault", TOO_LARGE, ids=str)
async def test_a_companion_that_is_too_large_is_made_smaller(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion_codec, "MOST_BYTES", 500)
    world = World()
    world.put(a=spec(node="ghost"), b=spec(node="ghost"), c=spec(node="ghost"))
    with capture_logs() as logs:
        _, first = await world.write(MISSING, fault)
        _, second = await world.write(MISSING, fault, later=30)
        _, third = await world.write(MISSING, fault, later=30)
        _, fourth = await world.write(MISSING, answer(1), later=30)
    assert "message" in said(first, "a")
    assert second.body["data"].keys() == {"a", "b", "c"}
    assert "message" not in said(second, "a")
    assert len(third.body["data"]) == 3
    assert len(fourth.body["data"]) == 3
    faults = [log["event"] for log in logs if log["event"] != "holds not backed"]
    assert faults == ["status cannot be written, retrying"]


async def test_keys_without_room_are_logged_and_said_once_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companion_codec, "MOST_BYTES", 150)
    world = World()
    world.put(a=spec(), b=spec(), c=spec())
    with capture_logs() as logs:
        _, create = await world.write(MISSING, answer(1))
    there = set(create.body["data"])
    (left_out,) = {"a", "b", "c"} - there
    assert [log["keys"] for log in logs] == [1]
    world.put(**{left_out: spec()})
    (patch,) = await world.write(answer(2))
    assert patch.body["data"].keys() == {"a", "b", "c"}
    assert said(patch, left_out)["phase"] == "Active"


async def test_messages_that_there_is_no_room_for_are_in_the_events_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companion_codec, "MOST_BYTES", 200)
    world = World()
    world.put(a=spec(node="ghost"))
    _, create = await world.write(MISSING, answer(1))
    assert "message" in said(create, "a")
    world.put(a=spec(node="ghost"), b=spec(node="ghost"))
    (patch,) = await world.write(answer(2))
    assert ["message" in said(patch, key) for key in ("a", "b")] == [False, False]
    ends = "node 'ghost' does not exist; the reservation waits for it"
    assert world.warned == [("NodeNotFound", f"{key}: {ends}") for key in ("a", "b")]


async def test_others_have_their_turn_while_many_holds_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two thousand holds of one ConfigMap once held the event loop for 0.1 s of CPU."""
    monkeypatch.setattr("reserver.stores.configmap.status.Pacer", partial(Pacer, turn_s=0.0))
    world, turns, told_at = World(), 0, list[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def warn(*_: object) -> None:
        told_at.append(turns)

    monkeypatch.setattr(world.writer, "warn", warn)
    world.put(**{f"r{number}": spec(node="ghost") for number in range(10)})
    running = asyncio.create_task(others())
    await world.write(MISSING, answer(1))
    running.cancel()
    assert len(set(told_at)) == 10
