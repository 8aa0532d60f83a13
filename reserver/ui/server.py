"""The server of the page, on loopback and read-only, with a secret in its address."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Any

import msgspec
from aiohttp import web

from reserver.errors import ConfigurationError, ReserverError
from reserver.ui.board import Board, chunks
from reserver.ui.documents import Document

HOST = "127.0.0.1"

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_THROTTLE_S = 0.25
"""Seconds between two messages of a stream."""

_HEARTBEAT_S = 10.0
_CHUNK = 1000
_MOST_STREAMS = 16

_LOG = logging.getLogger(__name__)
_SILENT = logging.getLogger(f"{__name__}.http")
_SILENT.disabled = True
"""aiohttp's logger, disabled: it logs a traceback for each malformed request of any local user."""

Query = Mapping[str, str]
View = Callable[[Query], Awaitable[object]]
"""Returns the document of a view for a query."""


@dataclass(frozen=True, slots=True)
class Page:
    """The parts of a page.

    Attributes:
        views: the views by name.
        explained: returns the message for an error.
        secret: part of every address, so that no other page and no other user can send requests.
        ticket: the path of a redirect to the page, valid once; empty for none.
    """

    views: Mapping[str, View]
    explained: Callable[[ReserverError], str]
    secret: str
    ticket: str = ""


class Stream:
    """The board, with an event that wakes up its followers."""

    def __init__(self) -> None:
        self.generation = secrets.token_hex(8)
        self.board = Board(self._changed)
        self._next = asyncio.Event()
        self.followers = 0

    def _changed(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def changed(self, version: int) -> bool:
        """Wait for a version after the given one; return False after `_HEARTBEAT_S` without one."""
        if self.board.version > version:
            return True
        try:
            async with asyncio.timeout(_HEARTBEAT_S):
                await self._next.wait()
        except TimeoutError:
            return False
        return True

    def resumed(self, last_id: str) -> int | None:
        """Return the version of a page from its last event id; None if it has to start anew."""
        generation, _, version = last_id.partition("-")
        if generation != self.generation or not version.isdecimal() or len(version) > 18:  # noqa: PLR2004
            return None
        return int(version)

    def now_ms(self) -> int:
        """Return the time by Reserver's clock, in unix milliseconds."""
        return self.board.by_reservers_clock(time.time())


@asynccontextmanager
async def serving(
    stream: Stream,
    views: Mapping[str, View],
    explained: Callable[[ReserverError], str],
    port: int,
    ticket: str = "",
) -> AsyncIterator[str]:
    """Serve the page during a block, and yield its address.

    With a ticket, `/TICKET` redirects to the page once: every user of the machine can read the
    address in the command line of a browser.

    Raises:
        ConfigurationError: the port is taken.
    """
    page = Page(views, explained, secrets.token_urlsafe(24), ticket)
    application = _application(stream, page)
    runner = web.AppRunner(application, access_log=None, logger=_SILENT, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError as exc:
            problem = (
                f"--port: {port} cannot be used ({exc.strerror}); choose another, or 0 for any"
            )
            raise ConfigurationError(problem) from exc
        yield f"http://{HOST}:{runner.addresses[0][1]}/{page.secret}/"
    finally:
        await runner.cleanup()


def _application(stream: Stream, page: Page) -> web.Application:
    application = web.Application(middlewares=[_guard], client_max_size=0)

    async def follow(request: web.Request) -> web.StreamResponse:
        return await _follow(request, stream)

    async def answer(request: web.Request) -> web.Response:
        return await _answer(request, page)

    tickets = {page.ticket} - {""}

    async def admit(request: web.Request) -> web.Response:
        if (ticket := request.path[1:]) not in tickets:
            raise web.HTTPNotFound
        tickets.discard(ticket)
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f"/{page.secret}/"})

    application.router.add_get("/{ticket}", admit)
    application.router.add_get(f"/{page.secret}/api/stream", follow)
    application.router.add_get(f"/{page.secret}/api/{{view}}", answer)
    application.router.add_get(f"/{page.secret}/{{file:[a-z.]*}}", _file)
    return application


@web.middleware
async def _guard(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer only requests of the page itself, against DNS rebinding and other sites."""
    if not _is_own(request):
        return web.Response(status=HTTPStatus.FORBIDDEN, text="not from here\n", headers=_HEADERS)
    try:
        response = await handler(request)
    except web.HTTPException as exc:
        return web.Response(status=exc.status, text=f"{exc.reason}\n", headers=_HEADERS)
    if not response.prepared:
        response.headers.update(_HEADERS)
    return response


def _is_own(request: web.Request) -> bool:
    """Return whether a request comes from this page, by Host, Origin and Fetch Metadata."""
    host = request.headers.get("Host", "")
    name, _, port = host.partition(":")  # A browser leaves port 80 out.
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "none")
    return (
        name in {HOST, "localhost"}
        and (not port or port.isdecimal())
        and (origin is None or origin == f"http://{host}")
        and site in {"none", "same-origin"}
    )


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["file"] or "index.html"
    found = resources.files("reserver.ui") / "page" / name
    suffix = name[name.rfind(".") :]
    if suffix not in _TYPES or not found.is_file():
        raise web.HTTPNotFound
    return web.Response(body=found.read_bytes(), content_type=_TYPES[suffix], charset="utf-8")


async def _answer(request: web.Request, page: Page) -> web.Response:
    view = page.views.get(request.match_info["view"])
    if view is None:
        raise web.HTTPNotFound
    try:
        document = await view(request.query)
    except ReserverError as exc:
        problem = {"error": page.explained(exc)}
        return _json(problem, HTTPStatus.BAD_GATEWAY)
    except Exception as exc:  # noqa: BLE001 - the other views continue
        _LOG.exception("a view of the page failed")
        problem = {"error": f"{type(exc).__name__}: a bug of Reserver; please report the traceback"}
        return _json(problem, HTTPStatus.INTERNAL_SERVER_ERROR)
    return _json(document)


def _json(document: object, status: int = HTTPStatus.OK) -> web.Response:
    body = msgspec.json.encode(document)
    return web.Response(body=body, content_type="application/json", status=status)


async def _follow(request: web.Request, stream: Stream) -> web.StreamResponse:
    """Send all documents, then each change; a reconnecting page gets the missed changes."""
    if stream.followers >= _MOST_STREAMS:
        raise web.HTTPTooManyRequests
    stream.followers += 1
    try:
        headers = {**_HEADERS, "Content-Type": "text/event-stream"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(b"retry: 500\n\n")
        await _send_all(response, stream, request.headers.get("Last-Event-ID", ""))
    except ConnectionError:
        pass  # The page was closed.
    finally:
        stream.followers -= 1
    return response


async def _send_all(response: web.StreamResponse, stream: Stream, last_id: str) -> None:
    version = stream.resumed(last_id)
    while True:
        changes = stream.board.since(version) if version is not None else None
        if changes is None:  # The page is new, or was disconnected for too long.
            changes = stream.board.all()
            await _send(response, stream, {"reset": True}, None)
        version = stream.board.version
        *first, last = chunks(changes, _CHUNK)
        for part in first:
            await _send(response, stream, part, None)
        await _send(response, stream, {**last, "complete": True}, version)
        while not await stream.changed(version):
            await _send(response, stream, {}, version)
        await asyncio.sleep(_THROTTLE_S)


async def _send(
    response: web.StreamResponse,
    stream: Stream,
    part: Document | dict[str, Any],
    version: int | None,
) -> None:
    sent = {"now": stream.now_ms(), **part}
    # A page resumes only from a complete version.
    name = f"id: {stream.generation}-{version}\n".encode() if version is not None else b""
    await response.write(name + b"data: " + msgspec.json.encode(sent) + b"\n\n")
