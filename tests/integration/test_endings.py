"""The outcome of removed reservations is reported, for either store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reserver.base.pacer import Pacer
from reserver.client import CallFailed, Client, PodOwner, Spec
from reserver.errors import ApiError
from reserver.reservations.enums import Outcome, StoreKind
from reserver.stores.archive import SHARDS
from reserver.v1 import reservation_pb2 as pb
from tests.integration.world import CONFIGMAPS, SYSTEM, World, again, serving
from tests.waiting import until, until_answered

SPEC = Spec(
    owners=(PodOwner(namespace="shop", name="web-0"),), node="worker-1", resources={"cpu": "2"}
)
_EVENTS = f"/api/v1/namespaces/{SYSTEM}/events"


@pytest.fixture(params=StoreKind)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with serving(tmp_path, store=request.param) as world:
        yield world


async def bind(world: World, pod: str, node: str = "worker-1") -> None:
    """Create a pod and bind it by hand, which claims what names it."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    body = {"metadata": {"name": pod}, "spec": {"nodeName": node, "containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)


async def messages(world: World, reason: str) -> list[str]:
    """Return what events say."""
    events = json.loads(await world.cluster.client.send("GET", _EVENTS))["items"]
    return [event["message"] for event in events if event["reason"] == reason]


async def told(world: World, reason: str) -> str:
    """Wait for an event and return its message."""
    found = await until_answered(lambda: messages(world, reason))
    return found[0]


async def test_an_event_tells_who_has_claimed_it(world: World, client: Client) -> None:
    await client.create("move", SPEC)
    await bind(world, "web-0")
    was = "deleted: " if world.writes_objects else "move: removed: "
    assert await told(world, "Claimed") == f"{was}claimed by shop/web-0"


async def test_an_event_tells_that_it_has_expired(world: World, client: Client) -> None:
    await client.create("move", SPEC)

    async def is_extended() -> bool:
        with suppress(CallFailed):  # A busy machine reads the call once that time has passed.
            await client.extend("move", datetime.now(UTC) + timedelta(milliseconds=500))
            return True
        return False

    await until_answered(is_extended)
    was = "deleted: " if world.writes_objects else "move: removed: "
    assert await told(world, "Expired") == f"{was}expired unclaimed"


async def test_what_is_retained_stays_claimed_after_a_restart_though_its_pod_is_gone(
    world: World, client: Client, tmp_path: Path
) -> None:
    await client.create("move", replace(SPEC, retain=True, description="for the move"))
    await bind(world, "web-0")
    await recorded(world)
    await world.cluster.client.send("DELETE", "/api/v1/namespaces/shop/pods/web-0")
    async with again(
        tmp_path, StoreKind.OBJECT if world.writes_objects else StoreKind.CONFIGMAP
    ) as api:
        found = (await api.Get(pb.GetRequest(name="move"))).reservation
    assert found.status.phase == pb.PHASE_CLAIMED
    assert found.spec.description == "for the move"
    assert await world.written()
    await client.release("move")
    assert not await world.written()


async def why_missing(client: Client, name: str) -> str:
    """Wait until a reservation is removed; return the error of Get then."""

    async def why() -> str:
        try:
            await client.get(name)
        except CallFailed as exc:
            return exc.message
        return ""

    return await until_answered(why)


async def recorded(world: World) -> None:
    """Wait until the claim is written down."""

    async def is_claimed() -> bool:
        return '"phase":"Claimed"' in await said(world)

    await until_answered(is_claimed)


async def said(world: World) -> str:
    """Return the status of the reservation as compact JSON; empty without one."""
    if world.writes_objects:
        return json.dumps((await world.objects())["move"].get("status", {}), separators=(",", ":"))
    with suppress(ApiError):
        return (await world.data("reservations-status")).get("move", "")
    return ""


async def test_it_is_known_what_became_of_it_even_after_a_restart(
    world: World, client: Client, tmp_path: Path
) -> None:
    await client.create("move", replace(SPEC, description="for the move"))
    await client.create("other", replace(SPEC, owners=(PodOwner(namespace="shop", name="web-1"),)))
    await client.release("other")
    await bind(world, "web-0")
    assert "'move' any more: it was claimed by shop/web-0" in await why_missing(client, "move")
    past = [each async for each in client.history()]
    assert [(each.name, each.outcome, each.claimed) for each in past] == [
        ("other", Outcome.REMOVED, 0),
        ("move", Outcome.CLAIMED, 1),
    ]
    (claim,) = past[1].claims
    assert (claim.pod, claim.node, past[1].nodes) == ("shop/web-0", "worker-1", ("worker-1",))
    assert (past[1].resources["cpu"], past[1].description) == ("2", "for the move")
    store = StoreKind.OBJECT if world.writes_objects else StoreKind.CONFIGMAP
    archive = world.running.assembly.archivist.archive
    await until(lambda: not any(map(archive.pending, range(SHARDS))))
    async with again(tmp_path, store) as api:
        answer = await api.History(pb.HistoryRequest(name="move"))
        (found,) = answer.reservations
        assert found.claims[0].pod == "shop/web-0"
        late = pb.HistoryRequest(owner_namespace="shop", since=found.ended)
        late.since.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
        assert not (await api.History(late)).reservations
        pages = [await api.History(pb.HistoryRequest(page_size=1))]
        pages.append(await api.History(pb.HistoryRequest(page_token=pages[0].next_page_token)))
        assert [each.name for page in pages for each in page.reservations] == ["other", "move"]


async def test_an_event_warns_of_a_hold_that_nobody_claims_before_it_expires(
    world: World, client: Client
) -> None:
    await client.create("move", replace(SPEC, ttl=timedelta(hours=1)))
    await client.extend("move", datetime.now(UTC) + timedelta(minutes=5))
    assembly = world.running.assembly
    clock = assembly.reminder.clock
    assembly.reminder.clock = lambda: clock() + 200.0
    await assembly.reminder.look(assembly.state.ledger, Pacer())
    (message,) = await until_answered(lambda: messages(world, "ExpiresSoon"))
    assert "and nobody has claimed it; extend it (reserver extend)" in message
    assert message.startswith("expires in" if world.writes_objects else "move: expires in")
    assert assembly.expiring == 1


@pytest.mark.parametrize("namespace", ["", "shop"])
async def test_an_owner_of_our_own_namespace_that_names_none_is_told(
    tmp_path: Path, namespace: str
) -> None:
    async with serving(tmp_path, "worker-1") as world:
        owner = {"name": "web-0"} | ({"namespace": namespace} if namespace else {})
        spec = {"owners": [{"pod": owner}], "node": "worker-1", "resources": {"cpu": "1"}}
        data = {"mine": json.dumps(spec), "next": "{}"}
        metadata = {"name": "store", "labels": {"reserver.io/store": "true"}}
        body = {"metadata": metadata, "data": data}
        await world.cluster.client.send("POST", CONFIGMAPS, body)
        assert await told(world, "InvalidReservation")  # Of what is read after it.
        said = "mine: an owner names no namespace, so only pods of reserver-system may claim it; "
        remedy = "write the namespace of its pods"
        if namespace:
            assert not await messages(world, "NoNamespace")
        else:
            assert await told(world, "NoNamespace") == said + remedy
