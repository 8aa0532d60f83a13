"""Bounds on calls, watches, streams and connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from reserver.errors import TooMany
from reserver.grpc import interceptor, service
from reserver.grpc.concurrency import CallCount, peer_of
from reserver.grpc.service import MOST_METADATA_BYTES
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from tests.unit.grpc.doors.served import GET, ROOT, begun, channel, served
from tests.unit.grpc.test_access import Reviewer, code_of


async def test_health_is_followed_by_few_at_once_and_the_rest_goes_on() -> None:
    async with served(Reviewer()) as address, AsyncExitStack() as stack:
        made = [await stack.enter_async_context(channel(address)) for _ in range(3)]
        refused = []
        for number in range(60):
            stub = health_pb2_grpc.HealthStub(made[number % 3])
            watch = stub.Watch(health_pb2.HealthCheckRequest())
            try:
                await begun(watch)
            except grpc.aio.AioRpcError as exc:
                refused.append(exc.code())
        assert refused == [grpc.StatusCode.RESOURCE_EXHAUSTED] * (60 - 8)
        call = ReservationServiceStub(made[0]).Get(pb.GetRequest(name="a"), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND


async def test_one_user_has_so_many_watches_and_gets_another_once_one_has_ended() -> None:
    async with served(Reviewer()) as address, AsyncExitStack() as stack:
        made = [await stack.enter_async_context(channel(address)) for _ in range(2)]
        stubs = [ReservationServiceStub(each) for each in made]
        watches = []
        for number in range(32):
            watch = stubs[number % 2].Watch(pb.WatchRequest(), metadata=ROOT)
            watches.append(await begun(watch))
        one_more = stubs[0].Watch(pb.WatchRequest(), metadata=ROOT)
        assert await code_of(one_more.read()) is grpc.StatusCode.RESOURCE_EXHAUSTED
        watches[0].cancel()
        async with asyncio.timeout(10):
            while True:
                try:
                    await begun(stubs[0].Watch(pb.WatchRequest(), metadata=ROOT))
                except grpc.aio.AioRpcError:
                    continue  # The server has not heard of the end yet.
                break


@pytest.mark.parametrize("reviewer", [Reviewer(), None], ids=["tokens", "no tokens"])
async def test_one_peer_has_so_many_calls(
    reviewer: Reviewer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interceptor, "PATIENCE_S", 300.0)
    refused = 300 - (128 if reviewer else 256)
    speak = asyncio.Event()
    outcomes: asyncio.Queue[grpc.StatusCode] = asyncio.Queue()

    async def spoken() -> AsyncIterator[bytes]:
        await speak.wait()
        yield pb.GetRequest(name="a").SerializeToString()

    async def call(over: Any) -> None:
        outcomes.put_nowait(await code_of(over.stream_unary(GET)(spoken(), metadata=ROOT)))

    async with served(reviewer) as address, AsyncExitStack() as stack:
        made = [await stack.enter_async_context(channel(address)) for _ in range(4)]
        async with asyncio.TaskGroup() as open_:
            for number in range(300):
                open_.create_task(call(made[number % 4]))
            first = [await outcomes.get() for _ in range(refused)]
            speak.set()
        assert set(first) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        others = [outcomes.get_nowait() for _ in range(300 - refused)]
        assert set(others) == {grpc.StatusCode.NOT_FOUND}


async def test_headers_have_a_bound() -> None:
    async with served(Reviewer()) as address, channel(address) as made:
        large = (*ROOT, ("x", "y" * MOST_METADATA_BYTES))
        call = ReservationServiceStub(made).Get(pb.GetRequest(name="a"), metadata=large)
        assert await code_of(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
        call = ReservationServiceStub(made).Get(pb.GetRequest(name="a"), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND
        token = (("authorization", f"Bearer {'t' * 16_000}"),)
        call = ReservationServiceStub(made).Get(pb.GetRequest(name="a"), metadata=token)
        assert await code_of(call) is grpc.StatusCode.UNAUTHENTICATED  # The header was read.


def option(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    """Replace values of existing gRPC options."""
    given = {f"grpc.{name}": value for name, value in values.items()}
    assert given.keys() <= dict(service._OPTIONS).keys()
    options = tuple((name, given.get(name, value)) for name, value in service._OPTIONS)
    monkeypatch.setattr(service, "_OPTIONS", options)


async def closed_at_last(address: str) -> bool:
    """Return whether the server closes a silent connection within seconds."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(20):
            while await reader.read(1000):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    else:
        return True
    finally:
        writer.close()


async def test_a_connection_on_which_nothing_is_said_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    option(monkeypatch, server_handshake_timeout_ms=200)
    async with served(Reviewer()) as address:
        assert await closed_at_last(address)


async def test_there_are_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    option(monkeypatch, max_allowed_incoming_connections=3)
    async with served(Reviewer()) as address, AsyncExitStack() as stack:
        for _ in range(3):
            made = await stack.enter_async_context(channel(address))
            call = ReservationServiceStub(made).Get(pb.GetRequest(name="a"), metadata=ROOT)
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND
        made = await stack.enter_async_context(channel(address))
        call = ReservationServiceStub(made).Get(pb.GetRequest(name="a"), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.UNAVAILABLE


async def test_one_connection_has_so_many_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    option(monkeypatch, max_concurrent_streams=3)
    async with served(Reviewer()) as address, channel(address) as made:
        stub = ReservationServiceStub(made)
        watches = [await begun(stub.Watch(pb.WatchRequest(), metadata=ROOT)) for _ in range(3)]
        call = stub.Get(pb.GetRequest(name="a"), metadata=ROOT, timeout=0.3)
        assert await code_of(call) is grpc.StatusCode.DEADLINE_EXCEEDED  # Waits for its turn.
        watches[0].cancel()
        call = stub.Get(pb.GetRequest(name="a"), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND


async def test_an_old_connection_ends_and_its_watches_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option(monkeypatch, max_connection_age_ms=200, max_connection_age_grace_ms=100)
    async with served(Reviewer()) as address, channel(address) as made:
        stub = ReservationServiceStub(made)
        watch = await begun(stub.Watch(pb.WatchRequest(), metadata=ROOT))
        assert await code_of(watch.read()) is grpc.StatusCode.UNAVAILABLE
        call = stub.Get(pb.GetRequest(name="a"), metadata=ROOT)
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND


async def test_an_idle_connection_ends_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    option(monkeypatch, max_connection_idle_ms=100)
    async with served(Reviewer()) as address, channel(address) as made:
        stub = ReservationServiceStub(made)
        states = grpc.ChannelConnectivity
        for _ in range(3):
            call = stub.Get(pb.GetRequest(name="a"), metadata=ROOT)
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND
            async with asyncio.timeout(10):
                while (state := made.get_state()) is states.READY:
                    await made.wait_for_state_change(state)


def test_a_share_counts_each_and_everybody() -> None:
    share = CallCount("calls", each=2, total=3)
    with share.of("a"), share.of("a"), share.of("b"):
        with pytest.raises(TooMany, match="a has 2 calls open"), share.of("a"):
            pass
        with pytest.raises(TooMany, match="there are 3 calls"), share.of("c"):
            pass
        assert len(share) == 3
    assert len(share) == 0
    assert not share._open


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("ipv4:10.0.0.1:4242", "10.0.0.1"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:4242", "2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2:ffff::1]:1", "2001:db8:1:2::/64"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:1", "10.0.0.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::/64"),
        ("unix:/run/x", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_peer_is_what_one_host_cannot_change(address: str, peer: str) -> None:
    assert peer_of(address) == peer
