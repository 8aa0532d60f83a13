"""The server answers its own page and no other, and a broken stream is resumed."""

from __future__ import annotations

import asyncio
import json
import re
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import resources
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import pytest

from reserver.errors import ConfigurationError, InvalidInput, ReserverError
from reserver.ui import server
from reserver.ui.server import Query, Stream


async def _echo(query: Query) -> object:
    if "bad" in query:
        raise InvalidInput("bad", "is bad", "leave it out")
    if "bug" in query:
        raise KeyError
    return dict(query)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Stream, str, aiohttp.ClientSession]]:
    stream = Stream()
    async with (
        server.serving(stream, {"echo": _echo}, str, 0) as address,
        aiohttp.ClientSession() as session,
    ):
        yield stream, address, session


Served = tuple[Stream, str, aiohttp.ClientSession]


async def _events(
    session: aiohttp.ClientSession, address: str, last_id: str = ""
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with session.get(f"{address}api/stream", headers=headers) as response:
        event_id = ""
        async for line in response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                event_id = value
            elif name == "data":
                yield event_id, json.loads(value)


async def test_every_file_of_the_page_is_served_with_a_strict_policy(served: Served) -> None:
    _, address, session = served
    folder = resources.files("reserver.ui") / "page"
    for name in ["", *(each.name for each in folder.iterdir())]:
        async with session.get(address + name) as response:
            assert response.status == 200
            assert "default-src 'self'" in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_address_that_a_browser_is_started_with_leads_to_the_page_once() -> None:
    async with (
        server.serving(Stream(), {}, str, 0, "ticket") as address,
        aiohttp.ClientSession() as session,
    ):
        start = urljoin(address, "/ticket")
        async with session.get(start, headers={"Origin": "http://evil.example"}) as refused:
            assert refused.status == 403
        async with session.get(start) as page:
            assert (page.status, str(page.url)) == (200, address)
        async with session.get(start) as again:
            assert again.status == 404


def test_the_page_asks_nobody_else_and_has_no_code_in_its_markup() -> None:
    for each in (resources.files("reserver.ui") / "page").iterdir():
        text = each.read_text()
        assert not re.search(r"(?<!xmlns=\")https?://", text), each.name
        assert "innerHTML" not in text
        if each.name.endswith(".html"):
            assert not re.search(r"<script(?![^>]* src=)|style=|\son\w+=", text)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "127.0.0.1", "Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
async def test_other_pages_are_refused(
    served: Served, headers: dict[str, str], status: int
) -> None:
    _, address, session = served
    async with session.get(f"{address}api/echo", headers=headers) as response:
        assert response.status == status


@pytest.mark.parametrize(
    "path", ["", "api/stream", "wrong-secret/", "wrong-secret/api/echo", "index.html"]
)
async def test_without_the_secret_there_is_nothing(served: Served, path: str) -> None:
    _, address, session = served
    root = address.rsplit("/", 2)[0]
    async with session.get(f"{root}/{path}") as response:
        assert response.status == 404


@pytest.mark.parametrize("path", ["../server.py", "%2e%2e/server.py", "nope.js", "page", ".py"])
async def test_no_other_file_is_served(served: Served, path: str) -> None:
    _, address, session = served
    async with session.get(address + path) as response:
        assert response.status in {403, 404}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed(served: Served, method: str) -> None:
    _, address, session = served
    async with session.request(method, f"{address}api/echo", data=b"x" * 10**6) as response:
        assert response.status == 405


async def test_a_question_that_fails_says_why(served: Served) -> None:
    _, address, session = served
    async with session.get(f"{address}api/echo?bad=1") as response:
        assert (response.status, await response.json()) == (
            502,
            {"error": "bad: is bad; leave it out"},
        )


async def test_a_bug_of_a_view_is_reported_and_leaves_the_others(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    _, address, session = served
    async with session.get(f"{address}api/echo?bug=1") as response:
        assert (response.status, "KeyError" in await response.text()) == (500, True)
        assert "Content-Security-Policy" in response.headers
    assert "KeyError" in caplog.text


@pytest.mark.parametrize(
    "request_",
    [
        b"\0\1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 10**6 + b"\r\n\r\n",
        b"GET /" + b"x" * 10**6 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_without_a_word_in_the_terminal(
    served: Served, request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with _connected(served) as (reader, writer):
        writer.write(request_)
        assert re.match(rb"HTTP/1.[01] 40[03]", await reader.readline())
    assert caplog.text == ""


async def test_readers_that_do_not_read_cost_a_chunk_each(served: Served) -> None:
    stream, address, _ = served
    for number in range(5_000):
        stream.board.put("nodes", f"n{number}", {"text": "x" * 1_000})
    path = urlsplit(address).path
    async with AsyncExitStack() as until:
        for _ in range(16):
            reader, writer = await until.enter_async_context(_connected(served))
            writer.write(f"GET {path}api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await reader.read(1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        tracemalloc.start()
        for number in range(5_000):
            stream.board.put("nodes", f"n{number}", {"text": "y" * 1_000})
            await asyncio.sleep(0)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert grown < 40 * 2**20  # The unread events of each client would be 80 MB.


@asynccontextmanager
async def _connected(
    served: Served,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(served[1])
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_stream_has_everything_then_each_change_and_is_resumed(served: Served) -> None:
    stream, address, session = served
    stream.board.put("nodes", "a", {"held": 1})
    async with asyncio.timeout(20):
        events = _events(session, address)
        assert (await anext(events))[1]["reset"]
        _, whole = await anext(events)
        assert whole["nodes"] == {"a": {"held": 1}}
        assert whole["complete"]
        stream.board.put("nodes", "<script>", {"held": 2})
        event_id, change = await anext(events)
        assert change["nodes"] == {"<script>": {"held": 2}}
        await events.aclose()  # type: ignore[attr-defined]
        stream.board.put("nodes", "a", None)
        _, missed = await anext(_events(session, address, event_id))
        assert missed["nodes"] == {"a": None}
        assert "reset" not in missed
        for unknown in ("other-1", f"{stream.generation}-{'9' * 5000}", "nonsense", "-", "\u0661"):
            assert (await anext(_events(session, address, unknown)))[1].get("reset")


async def test_a_page_with_a_clock_of_its_own_gets_reservers_time(served: Served) -> None:
    stream, address, session = served
    stream.board.put("status", "offset", {"seconds": 3600.0})
    async with asyncio.timeout(20):
        _, event = await anext(_events(session, address))
    assert event["now"] > time.time() * 1000 + 3_500_000


async def test_many_streams_are_refused(served: Served) -> None:
    stream, address, session = served
    stream.followers = 16
    async with session.get(f"{address}api/stream") as response:
        assert response.status == 429


async def test_a_port_that_is_taken_is_named(served: Served) -> None:
    _, address, _ = served
    port = int(address.split(":")[2].split("/")[0])
    with pytest.raises(ConfigurationError, match=f"--port: {port} cannot be used"):
        async with server.serving(Stream(), {}, _explained, port):
            pass


def _explained(error: ReserverError) -> str:
    return str(error)
