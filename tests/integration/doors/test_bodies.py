"""Attacks on an HTTP listener with bodies of requests."""

from __future__ import annotations

import gzip
from contextlib import AsyncExitStack

import pytest

from reserver.extender.server import EXTENDER_LIMITS
from tests.integration.doors.site import (
    ATTACKER,
    BIND,
    JSON,
    KUBELET,
    OTHERS,
    SOON_S,
    Site,
    serving,
)
from tests.integration.doors.wire import Wire, call, wire
from tests.waiting import until

BOMB = gzip.compress(bytes(2**24))


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Encoding: gzip",),
        ("Content-Encoding: GZIP", JSON),
        ("Content-Encoding: deflate", "Expect: 100-continue"),
        ("Content-Encoding: br", "Connection: keep-alive"),
        ("content-encoding: zstd", "Content-Encoding: gzip"),
    ],
)
@pytest.mark.parametrize("line", ["GET /healthz HTTP/1.1", "POST /filter HTTP/1.1"])
async def test_no_body_is_inflated(extender: Site, line: str, headers: tuple[str, ...]) -> None:
    async with wire(extender.url) as client:
        client.say(call(line, *headers, body=BOMB))
        assert b"HTTP/1.1 415 " in await client.all_answers()
    assert not extender.handled


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 1",),
        ("Content-Length: 18446744073709551614",),
        ("Transfer-Encoding: chunked",),
        ("Content-Length: 10", "Expect: 100-continue"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: -1",),
    ],
)
async def test_the_health_port_takes_no_body(health: Site, headers: tuple[str, ...]) -> None:
    async with wire(health.url) as client:
        client.say(call("GET /healthz HTTP/1.1", JSON, *headers))
        assert b" 200 " not in await client.all_answers()
    assert not health.handled
    assert await health.is_well()


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(extender: Site) -> None:
    for path, most in EXTENDER_LIMITS.bodies.items():
        async with wire(extender.url) as client:
            client.say(call(f"POST {path} HTTP/1.1", JSON, f"Content-Length: {most + 1}"))
            assert (await client.answer())[0] == 413
    assert not extender.handled


@pytest.mark.parametrize("first", [b"", BIND], ids=["at-once", "after-a-call"])
@pytest.mark.parametrize("said", [b"", b"{"], ids=["nothing", "slowly"])
async def test_a_body_that_does_not_come_ends_the_connection(first: bytes, said: bytes) -> None:
    async with serving(EXTENDER_LIMITS, request_s=SOON_S) as site, wire(site.url) as client:
        if first:
            client.say(first)
            assert (await client.answer())[0] == 200
        client.say(call("POST /filter HTTP/1.1", JSON, "Content-Length: 100000"))
        await client.ended_while(lambda: said)
        await until(lambda: not len(site.door))
        assert "POST /filter" not in site.handled


async def test_a_body_in_advance_that_does_not_come_ends_the_connection() -> None:
    async with serving(EXTENDER_LIMITS, request_s=SOON_S) as site, wire(site.url) as client:
        client.say(BIND + call("POST /filter HTTP/1.1", JSON, "Content-Length: 100000"))
        assert (await client.answer())[0] == 200
        await client.all_answers()
        await until(lambda: not len(site.door))
        assert site.handled == ["POST /bind"]


async def test_a_call_that_is_answered_slowly_is_not_ended() -> None:
    async with serving(EXTENDER_LIMITS, request_s=SOON_S) as site, wire(site.url) as client:
        site.answers.clear()
        client.say(BIND)
        async with wire(site.url) as slower:
            slower.say(BIND[:-1])
            await slower.all_answers()  # So much time has passed.
        site.answers.set()
        assert (await client.answer())[0] == 200


async def test_many_large_bodies_at_a_time_are_refused() -> None:
    async with serving(EXTENDER_LIMITS, bodies_bytes=3000) as site, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(wire(site.url)) for _ in range(4)]
        site.answers.clear()
        large = call("POST /filter HTTP/1.1", JSON, body=bytes(1000))
        for client in clients[:3]:
            client.say(large)
        await until(lambda: len(site.handled) == 3)
        clients[3].say(large)
        assert (await clients[3].answer())[0] == 503
        site.answers.set()
        for client in clients[:3]:
            assert (await client.answer())[0] == 200
        clients[0].say(large)  # What was answered counts no more.
        assert (await clients[0].answer())[0] == 200


async def test_bodies_that_do_not_come_make_room_for_one_that_does() -> None:
    async with serving(EXTENDER_LIMITS, bodies_bytes=3000) as site, AsyncExitStack() as stack:
        site.answers.clear()
        announced = call("POST /filter HTTP/1.1", JSON, "Content-Length: 1000")
        whole = call("POST /filter HTTP/1.1", JSON, body=bytes(1000))

        async def says(what: bytes, peer: str) -> Wire:
            client = await stack.enter_async_context(wire(site.url, peer))
            before = len(site.handled)
            client.say(what)
            if what is whole:
                await until(lambda: len(site.handled) > before)
            return client

        answered = await says(whole, ATTACKER)  # It has come: it keeps its place.
        (other,) = OTHERS[:1]
        slow = [await says(announced + bytes(number), ATTACKER) for number in (1, 2)]
        await until(lambda: site.door._bodies.is_full(1))
        first = await says(whole, other)
        assert await slow[0].all_answers() == b""
        second = await says(whole, other)
        assert await slow[1].all_answers() == b""
        late = await stack.enter_async_context(wire(site.url, KUBELET))
        late.say(whole)
        assert (await late.answer())[0] == 503
        site.answers.set()
        for client in (answered, first, second):
            assert (await client.answer())[0] == 200


async def test_bodies_of_clients_that_have_gone_count_no_more() -> None:
    async with serving(EXTENDER_LIMITS, bodies_bytes=3000) as site:
        site.answers.clear()
        async with AsyncExitStack() as stack:
            for _ in range(3):
                client = await stack.enter_async_context(wire(site.url))
                client.say(call("POST /filter HTTP/1.1", JSON, body=bytes(1000)))
            await until(lambda: len(site.handled) == 3)
        await until(lambda: not len(site.door))
        assert not site.door._bodies.is_full(3000)
        site.answers.set()
