"""What is done to an HTTP listener to keep it from answering, or to have it do harm."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from reserver.server.answer import Answer, Paths
from reserver.server.door import Door
from reserver.server.gate import Hosts
from reserver.server.http import EXTENDER_LIMITS, HEALTH_LIMITS
from reserver.server.limits import Limits
from reserver.server.listen import listening
from reserver.server.request import Request
from tests.integration.doors.wire import Wire, call, until, wire

SOON_S = 0.05
JSON = "Content-Type: application/json"
HEALTHZ = call("GET /healthz HTTP/1.1")
BIND = call("POST /bind HTTP/1.1", JSON, body=b"{}")
ATTACKER, OTHERS, KUBELET = "127.0.0.2", ("127.0.0.3", "127.0.0.4"), "127.0.0.9"


class Site:
    """A listener, and what came through its door."""

    def __init__(self, limits: Limits) -> None:
        self.handled: list[str] = []
        self.refused: list[str] = []
        self.url = ""
        self.answers = asyncio.Event()
        self.answers.set()
        self.door = Door(limits, Hosts.of("127.0.0.1", ()), self.refused.append)

    def paths(self) -> Paths:
        methods = {"/filter": "POST", "/bind": "POST", "/healthz": "GET"}
        return {path: (method, self._handle) for path, method in methods.items()}

    async def _handle(self, request: Request) -> Answer:
        self.handled.append(f"{request.method} {request.path}")
        await self.answers.wait()
        size = int(request.target.partition("?bytes=")[2] or "0")
        return Answer(b"x" * size or request.body)

    async def is_well(self, peer: str = KUBELET) -> bool:
        """Whether a probe is answered."""
        async with wire(self.url, peer) as probe:
            probe.say(HEALTHZ)
            return (await probe.answer())[0] == 200


@asynccontextmanager
async def serving(limits: Limits, **changed: Any) -> AsyncIterator[Site]:
    site = Site(replace(limits, **changed))
    async with listening(site.paths(), ("127.0.0.1", 0), 1.0, site.door) as site.url:
        yield site


@pytest.fixture
async def extender() -> AsyncIterator[Site]:
    async with serving(EXTENDER_LIMITS) as site:
        yield site


@pytest.fixture
async def health() -> AsyncIterator[Site]:
    async with serving(HEALTH_LIMITS) as site:
        yield site


# Bodies.

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


# Heads.


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
    limits: Limits, head: bytes
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
async def test_who_does_not_read_the_answer_is_let_go(limits: Limits) -> None:
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
