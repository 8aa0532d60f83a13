"""Single requests to the API server over connections that are kept open (docs/adr/0046).

The scheduling of each pod sends one, its Binding. Most of its cost was not the request but the
overhead of a general-purpose client. Each request is counted.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httptools
from prometheus_client.core import CounterMetricFamily, Metric

from reserver.errors import ApiError
from reserver.k8s.credentials import Credentials

ERROR = "<error>"
"""The code of a request without an answer, as in client-go."""


class RequestCounts:
    """Number and waits of the requests of one client.

    Attributes:
        by_code: number of requests, by method and status code.
        waited_s: total wait for a free connection, in seconds.
    """

    def __init__(self) -> None:
        """Begin at 0."""
        self.by_code = Tally[tuple[str, str]]()
        self.waited_s = 0.0

    def trace(self) -> aiohttp.TraceConfig:
        """Return a trace that measures the waits of an aiohttp session."""

        async def begin(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:  # noqa: ANN401 - it is empty
            context.since = time.monotonic()

        async def end(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:  # noqa: ANN401 - as above
            self.waited_s += time.monotonic() - context.since

        trace = aiohttp.TraceConfig()
        trace.on_connection_queued_start.append(begin)
        trace.on_connection_queued_end.append(end)
        return trace


def measured(clients: Iterable[RequestCounts]) -> Iterator[Metric]:
    """Yield the metrics of the given clients, summed."""
    help_text = "Requests to the API server, by HTTP method and status code; 429 is throttled."
    requests = CounterMetricFamily("reserver_client_requests", help_text, labels=("method", "code"))
    totals = sum((each.by_code for each in clients), Tally[tuple[str, str]]())
    for labels, count in totals.items():
        requests.add_metric(labels, count)
    yield requests
    waited = sum(each.waited_s for each in clients)
    help_text = "Seconds that requests to the API server waited for one of the connections."
    yield CounterMetricFamily("reserver_client_wait_seconds", help_text, value=waited)


_CONNECT_S = 5.0
"""Seconds in which a connection must open."""

_FINAL = 200
"""The lowest status of a final answer."""


class Answered(NamedTuple):
    """An answer of the API server.

    Attributes:
        status: HTTP status.
        body: the whole body.
    """

    status: int
    body: bytes


class Exchange:
    """Connections to one API server, each for one request at a time."""

    def __init__(self, credentials: Credentials, most: int, counts: RequestCounts) -> None:
        """Open at most `most` connections, each when it is needed."""
        self._counts = counts
        self._credentials = credentials
        url = urlsplit(credentials.server)
        self._address = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        self._host, self._root = url.netloc, url.path
        self._room = asyncio.Semaphore(most)
        self._idle: list[_Connection] = []

    def close(self) -> None:
        """Close the idle connections."""
        for line in tuple(self._idle):
            line.close()

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answered:
        """Send a request, and return its answer.

        Raises:
            ApiError: the connection broke; the request may have been carried out.
            OSError: the API server cannot be reached.
        """
        lines = [f"{method} {self._root}{path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        raw = "\r\n".join(lines).encode("latin-1") + body
        if self._room.locked():
            began = time.monotonic()
            async with self._room:
                self._counts.waited_s += time.monotonic() - began
                return await self._exchange(method, raw)
        async with self._room:
            return await self._exchange(method, raw)

    async def _exchange(self, method: str, raw: bytes) -> Answered:
        status = 0
        try:
            line = self._idle.pop() if self._idle else await self._connected()
            try:
                answered = await line.ask(raw)
            except BaseException:
                line.close()  # Else its late answer would be read as that of the next request.
                raise
            if line.is_open:
                self._idle.append(line)
            status = answered.status
        finally:
            self._counts.by_code[method, str(status or ERROR)] += 1
        return answered

    async def _connected(self) -> _Connection:
        tls = self._credentials.tls
        host, port = self._address
        async with asyncio.timeout(_CONNECT_S):
            transport, line = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(self._lost),
                host,
                port,
                ssl=tls,
                server_hostname=(self._credentials.server_name or host) if tls else None,
            )
        notice_loss(transport.get_extra_info("socket"))
        return line

    def _lost(self, line: _Connection) -> None:
        if line in self._idle:
            self._idle.remove(line)


class _Connection(asyncio.Protocol):
    """One connection; httptools (llhttp) calls its `on_` methods."""

    def __init__(self, lost: Callable[[_Connection], None]) -> None:
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._wire: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._answer: asyncio.Future[Answered] | None = None

    @property
    def is_open(self) -> bool:
        return self._wire is not None and not self._wire.is_closing()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.abort()

    def ask(self, raw: bytes) -> asyncio.Future[Answered]:
        self._answer = self._loop.create_future()
        if self._wire is None:
            self._break_off()
        else:
            self._wire.write(raw)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = transport  # type: ignore[assignment]

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002 - the protocol's
        self._wire = None
        self._break_off()
        self._lost(self)
        del self._parser  # It refers back to this object.

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # No request is in flight.
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.close()

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        body, self._parts = b"".join(self._parts), []
        status = self._parser.get_status_code()
        if status < _FINAL:
            return
        answer, self._answer = self._answer, None
        if not self._parser.should_keep_alive():
            self.close()
        if answer is not None and not answer.done():
            answer.set_result(Answered(status, body))

    def _break_off(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            problem = "the API server broke off its answer"
            answer.set_exception(ApiError(0, "Unreachable", problem))


def notice_loss(sock: socket.socket) -> None:
    """Make a socket detect within 11 seconds that its peer's machine is gone.

    A kube-scheduler may be gone with that machine, and its successor, which takes over 15 seconds
    later, depends on this process's caches of that time (docs/adr/0013).
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # Not all systems have these options.
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
