"""The synchronous client on the embedded cluster, in a thread as a program without asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from reserver.client import (
    CallFailed,
    ChangeKind,
    Phase,
    PodOwner,
    Selection,
    Spec,
    SyncClient,
)
from reserver.reservations.accounts import WEEK_S, AccountKey, HoldUse
from reserver.reservations.enums import Outcome
from reserver.stores.codec import prices
from tests.integration.world import World, serving

SPEC = Spec(
    owners=[PodOwner(namespace="shop", name="web-0")], node="worker-1", resources={"cpu": "2"}
)
Result = TypeVar("Result")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path) as world:
        yield world


async def use(world: World, program: Callable[[SyncClient], Result]) -> Result:
    """Run a program that blocks."""

    def run() -> Result:
        assert world.running.grpc_address
        with SyncClient(world.running.grpc_address) as client:
            return program(client)

    return await asyncio.to_thread(run)


async def test_a_reservation_from_beginning_to_end(world: World) -> None:
    def program(client: SyncClient) -> None:
        made = client.create("move", SPEC, request_id="one")
        assert (made.phase, made.is_backed) == (Phase.ACTIVE, True)
        assert client.create("move", SPEC, request_id="one") == made
        until = datetime.now(UTC) + timedelta(hours=2)
        assert client.extend("move", until).spec.expires_at is not None
        with pytest.raises(CallFailed, match="ABORTED"):
            client.extend("move", until, etag=made.etag)
        more = replace(SPEC, resources={"cpu": "3"}, ttl=timedelta(hours=1))
        assert client.update("move", more).spec.resources["cpu"] == "3"
        listed = list(client.list(Selection(owner=PodOwner(namespace="shop", name="web-0"))))
        assert listed == [client.get("move")]
        client.release("move")
        client.release("move")
        with pytest.raises(CallFailed, match="NOT_FOUND"):
            client.release("move", missing_ok=False)
        (past,) = client.history("move")
        assert past.outcome is Outcome.REMOVED

    await use(world, program)


async def test_what_is_held_is_released_when_the_block_ends(world: World) -> None:
    ledger = world.running.assembly.ledger

    def program(client: SyncClient) -> None:
        with client.hold("move", SPEC) as held:
            assert held.is_backed
            assert ledger.held_on("worker-1")["cpu"] == 2000
        with pytest.raises(RuntimeError, match="sending failed"), client.hold("move", SPEC):
            raise RuntimeError("sending failed")
        nowhere = replace(SPEC, node="worker-9")
        with (
            pytest.raises(CallFailed, match=r"worker-9.*; nothing is held"),
            client.hold("move", nowhere),
        ):
            raise AssertionError("it has entered the block")

    await use(world, program)
    assert not ledger.held_on("worker-1")


async def test_sets_and_capacity(world: World) -> None:
    accountant = world.running.assembly.accountant
    week = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp())
    for key in (AccountKey(week, "team", "pod/web-0"), AccountKey(week - WEEK_S, "team", "old")):
        accountant.held.accounts.put(key, {"cpu": HoldUse(1000, 500, 500)})
    accountant.prices = prices.parse("memory=1,currency=EUR")

    def program(client: SyncClient) -> None:
        specs = {"a": SPEC, "b": replace(SPEC, resources={"cpu": "64"})}
        with pytest.raises(CallFailed, match="FAILED_PRECONDITION") as refused:
            client.create_set(specs)
        assert refused.value.reason == "CAN_NEVER_FIT"
        assert [each.never for each in client.capacity.what_if([specs["b"]]).shortages] == [True]
        assert [made.name for made in client.create_set({"a": SPEC})] == ["a"]
        (node,) = client.capacity.nodes(["worker-1"], {"cpu": "1"})
        assert node.resources["cpu"].held == "2"
        assert [each.name for each in client.capacity.quotas("shop")] == ["default"]
        week = datetime(2026, 11, 23, tzinfo=UTC)
        (account,) = client.capacity.accounts("team", since=week)
        assert (account.week, account.owner, account.used) == (week, "pod/web-0", 0.5)
        assert (account.cost, account.currency) == (None, "EUR")
        assert b"reserver" in client.capacity.dump()
        with pytest.raises(CallFailed, match="NOT_FOUND"):
            client.capacity.explain("shop", "nobody")

    await use(world, program)


async def test_a_watch_shows_what_is_there_and_what_changes(world: World) -> None:
    def program(client: SyncClient) -> None:
        client.create("move", SPEC)
        with closing(client.watch()) as changes:  # type: ignore[type-var]
            kinds = [next(changes).kind]
            client.release("move")
            while kinds[-1] is not ChangeKind.DELETED:
                kinds.append(next(changes).kind)
        assert kinds[0] is ChangeKind.ADDED

    await use(world, program)


async def test_a_server_that_is_not_there_is_waited_for_until_the_deadline() -> None:
    def program() -> float:
        before = time.monotonic()
        with (
            SyncClient("127.0.0.1:9", deadline_s=0.5) as client,
            pytest.raises(CallFailed, match="UNAVAILABLE"),
        ):
            client.get("move")
        return time.monotonic() - before

    assert await asyncio.to_thread(program) < 30


def test_a_refusal_to_send_a_token_in_plain_text() -> None:
    with pytest.raises(ValueError, match="over TLS only"):
        SyncClient("reserver.example:9443", token="secret")
