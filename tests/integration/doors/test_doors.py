"""Attacks on an HTTP listener: denial of service and malicious requests."""

from __future__ import annotations

import asyncio
import io
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from reserver.extender.server import EXTENDER_LIMITS, HEALTH_LIMITS
from reserver.http.message import ListenerLimits
from tests.integration.doors.site import (
    ATTACKER,
    BIND,
    HEALTHZ,
    JSON,
    KUBELET,
    OTHERS,
    SOON_S,
    Site,
    serving,
)
from tests.integration.doors.wire import Wire, call, wire
from tests.waiting import until


@pytest.mark.parametrize(
    "head",
    [
        call("GET /healthz HTTP/1.1", *(f"X-{number}: y" for number in range(100))),
        call("GET /healthz HTTP/1.1", "X: " + "y" * 10_000),
        call("GET /healthz HTTP/1.1", "X" * 10_000 + ": y"),
        call(f"GET /healthz?{'x' * 10_000} HTTP/1.1"),
        call("GET /healthz HTTP/1.1", host="x" * 10_000),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n" * 10_000 + b"x",
    ],
    ids=["fields", "value", "name", "line", "host", "tls", "zeros", "http2", "empty-lines"],
)
@pytest.mark.parametrize("limits", [EXTENDER_LIMITS, HEALTH_LIMITS], ids=["extender", "health"])
async def test_a_head_that_is_too_large_or_none_ends_the_connection(
    limits: ListenerLimits, head: bytes
) -> None:
    with capture_logs() as logs:
        async with serving(limits) as site, wire(site.url) as client:
            client.say(head)
            assert (await client.all_answers())[9:10] in (b"4", b"")
            assert not site.handled
    assert not [line for line in logs if "exception" in line]


async def _silent(client: Wire) -> None:
    await client.all_answers()


async def _dribbles_a_line(client: Wire) -> None:
    client.say(b"GET /healthz?")
    await client.ended_while(lambda: b"x")


async def _dribbles_fields(client: Wire) -> None:
    client.say(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    await client.ended_while(lambda: b"X: y\r\n")


async def _stops_in_a_head(client: Wire) -> None:
    client.say(HEALTHZ[:-2])
    await client.all_answers()


@pytest.mark.parametrize("slow", [_silent, _dribbles_a_line, _dribbles_fields, _stops_in_a_head])
async def test_who_never_completes_a_head_is_let_go_from_the_health_port(slow: Any) -> None:
    async with serving(HEALTH_LIMITS, lifetime_s=SOON_S) as site, wire(site.url) as client:
        await slow(client)
        await until(lambda: not len(site.door))


@pytest.mark.parametrize("slow", [_dribbles_a_line, _dribbles_fields, _stops_in_a_head])
@pytest.mark.parametrize("first", [b"", BIND], ids=["at-once", "after-a-call"])
async def test_who_never_completes_a_head_is_let_go_from_the_extender(
    slow: Any, first: bytes
) -> None:
    async with serving(EXTENDER_LIMITS, request_s=SOON_S) as site, wire(site.url) as client:
        if first:
            client.say(first)
            assert (await client.answer())[0] == 200
        await slow(client)
        await until(lambda: not len(site.door))


async def test_who_sends_nothing_for_long_is_let_go_from_the_extender() -> None:
    async with serving(EXTENDER_LIMITS, idle_s=SOON_S) as site:
        for said in (b"", BIND):
            async with wire(site.url) as client:
                client.say(said)
                await client.all_answers()


# Answers.


async def test_the_health_port_answers_one_request_for_each_connection(health: Site) -> None:
    async with wire(health.url) as client:
        client.say(HEALTHZ * 50)
        answers = await client.all_answers()
    assert answers.count(b"HTTP/1.1 200 ") == 1
    assert b"Connection: close" in answers
    assert health.handled == ["GET /healthz"]
    async with wire(health.url) as client:
        client.say(call("GET /nothing HTTP/1.1") * 2)
        assert (await client.all_answers()).count(b"HTTP/1.1 404 ") == 1


@pytest.mark.parametrize(
    "limits",
    [replace(EXTENDER_LIMITS, unread_s=SOON_S), replace(HEALTH_LIMITS, lifetime_s=SOON_S)],
    ids=["extender", "health"],
)
async def test_who_does_not_read_the_answer_is_let_go(limits: ListenerLimits) -> None:
    async with serving(limits) as site, wire(site.url) as client:
        client.pause()
        client.say(call("GET /healthz?bytes=33554432 HTTP/1.1"))
        await until(lambda: bool(site.handled))
        await until(lambda: not len(site.door))


async def test_requests_in_advance_are_not_taken_without_end(extender: Site) -> None:
    extender.answers.clear()
    async with wire(extender.url) as client:
        client.say(BIND)
        await until(lambda: bool(extender.handled))
        await client.ended_while(lambda: BIND * 1000)
        await until(lambda: not len(extender.door))
    assert len(extender.handled) == 1


async def test_a_few_requests_in_advance_are_answered_in_order(extender: Site) -> None:
    async with wire(extender.url) as client:
        client.say(BIND * 20)
        for _ in range(20):
            assert (await client.answer())[0] == 200


# Connections.


async def test_half_open_connections_push_out_each_other_and_no_probe(health: Site) -> None:
    """200 of them outlived any patience, at 44 KiB each."""
    async with AsyncExitStack() as stack:
        for _ in range(200):
            client = await stack.enter_async_context(wire(health.url, ATTACKER))
            client.say(HEALTHZ[:20])
        await until(lambda: len(health.door) == HEALTH_LIMITS.new_per_peer)
        assert await health.is_well()


async def test_a_flood_from_many_addresses_leaves_a_slow_probe_alone() -> None:
    async with (
        serving(HEALTH_LIMITS, connections=12, new=12, new_per_peer=6) as site,
        wire(site.url, KUBELET) as probe,
        AsyncExitStack() as stack,
    ):
        probe.say(HEALTHZ[:-2])
        await until(lambda: len(site.door) == 1)
        for peer in (ATTACKER, *OTHERS) * 30:
            await stack.enter_async_context(wire(site.url, peer))
        await until(lambda: len(site.door) == 12)
        probe.say(HEALTHZ[-2:])
        assert (await probe.answer())[0] == 200
        assert await site.is_well()


async def test_who_is_being_answered_is_never_pushed_out() -> None:
    async with (
        serving(EXTENDER_LIMITS, connections=4, new=4) as site,
        wire(site.url) as client,
        AsyncExitStack() as stack,
    ):
        site.answers.clear()
        client.say(BIND)
        await until(lambda: bool(site.handled))
        others = [await stack.enter_async_context(wire(site.url, ATTACKER)) for _ in range(40)]
        await asyncio.gather(*(other.all_answers() for other in others[:37]))
        site.answers.set()
        assert (await client.answer())[0] == 200


async def test_when_all_are_being_answered_a_new_connection_is_closed() -> None:
    async with serving(EXTENDER_LIMITS, connections=3) as site, AsyncExitStack() as stack:
        site.answers.clear()
        clients = [await stack.enter_async_context(wire(site.url)) for _ in range(3)]
        for client in clients:
            client.say(BIND)
        await until(lambda: len(site.handled) == 3)
        async with wire(site.url) as one_more:
            assert await one_more.all_answers() == b""
        assert site.refused == ["connections"]
        site.answers.set()
        for client in clients:
            assert (await client.answer())[0] == 200
        assert await site.is_well()  # In the place of the one that has waited longest.
        assert await clients[0].all_answers() == b""


async def test_connections_that_are_reset_leave_nothing_behind(health: Site) -> None:
    for said in (b"", b"GET", HEALTHZ, b"junk\r\n\r\n"):
        for _ in range(20):
            async with wire(health.url, ATTACKER) as client:
                client.say(said)
    await until(lambda: not len(health.door))
    assert await health.is_well()


# Browsers.


@pytest.mark.parametrize(
    "attack",
    [
        call("POST /bind HTTP/1.1", "Content-Type: text/plain", body=b"{}"),
        call("POST /bind HTTP/1.1", "Content-Type: application/x-www-form-urlencoded", body=b"{}"),
        call("POST /bind HTTP/1.1", body=b"{}"),
        call("POST /bind HTTP/1.1", JSON, "Origin: https://evil.example", body=b"{}"),
        call("POST /bind HTTP/1.1", JSON, "Origin: null", body=b"{}"),
        call("POST /bind HTTP/1.1", JSON, "Sec-Fetch-Site: cross-site", body=b"{}"),
        call("POST /bind HTTP/1.1", JSON, body=b"{}", host="evil.example"),
        call("POST /bind HTTP/1.1", JSON, body=b"{}", host="evil.example:9440"),
        call("POST /bind HTTP/1.1", JSON, body=b"{}", host="127.0.0.1.evil.example"),
        call("POST http://evil.example/bind HTTP/1.1", JSON, body=b"{}"),
        call("POST /bind HTTP/1.1", JSON, "Host: evil.example", body=b"{}"),
        b"POST /bind HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /bind HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        call("GET /filter HTTP/1.1", host="evil.example"),
        call("POST /bind HTTP/1.1", "Content-Type: text/plain", JSON, body=b"{}"),
        call("POST /bind HTTP/1.1", "Content-Type : application/json", body=b"{}"),
    ],
)
async def test_a_page_in_a_browser_does_nothing(extender: Site, attack: bytes) -> None:
    async with wire(extender.url) as client:
        client.say(attack)
        answers = await client.all_answers()
    assert answers.split()[1][:1] == b"4"
    assert b"Access-Control" not in answers
    assert not extender.handled


async def test_a_browser_that_asks_first_is_not_told_yes(extender: Site) -> None:
    asked = ("Origin: https://evil.example", "Access-Control-Request-Method: POST")
    async with wire(extender.url) as client:
        client.say(call("OPTIONS /bind HTTP/1.1", *asked))
        answers = await client.all_answers()
    assert b" 403 " in answers
    assert b"Access-Control" not in answers


async def test_kube_scheduler_keeps_its_connection(extender: Site) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"}
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(extender.url, connector=connector) as session:
        for body in (b"{}", b" " * EXTENDER_LIMITS.bodies["/filter"]):
            async with session.post("/filter", data=io.BytesIO(body), headers=headers) as answer:
                assert await answer.read() == body
                assert answer.connection is None or len(extender.door) == 1
    assert extender.handled == ["POST /filter"] * 2
    assert not extender.refused


async def test_why_calls_are_refused_is_told_once_in_a_while(extender: Site) -> None:
    with capture_logs() as logs:
        for host in ("evil.example", "evil2.example", "evil3.example"):
            async with wire(extender.url) as client:
                client.say(call("GET /healthz HTTP/1.1", host=host))
                assert (await client.answer())[0] == 421
    (line,) = logs
    assert line["event"] == "call refused"
    assert "'evil.example' is not served here" in line["why"]
    assert line["peer"] == "127.0.0.1"
    assert extender.refused == ["host"] * 3
