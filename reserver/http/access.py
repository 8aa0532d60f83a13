"""Access control of an HTTP listener: the clients that may connect, and the calls that are read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from reserver.base.quarantine import take_note
from reserver.errors import ConfigurationError, InvalidInput
from reserver.http.connection import HttpConnection
from reserver.http.connections import (
    Bodies,
    CheckFailure,
    Connections,
    ConnectionStage,
    Hosts,
    refusal,
)
from reserver.http.message import Answered, HttpRequest, HttpResponse, ListenerLimits, Paths, error

log = structlog.get_logger(__name__)

_LOG_EVERY_S = 10.0
"""Seconds between two log lines about calls refused for the same reason."""

_REST_S = 0.1
"""Seconds of pause when no connection can be accepted, e.g. without free file descriptors."""

_CLOSING_S = 1.0
"""Seconds in which a client must close TLS."""


class Tls(Protocol):
    """The TLS context and identity checks of a listener."""

    @property
    def context(self) -> ssl.SSLContext:
        """TLS context of new connections; when it is replaced, older connections end."""

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return the reason why the owner of a certificate may not call; None if they may."""


class Access:
    """Accepts connections within limits, and passes on the calls that are allowed."""

    def __init__(
        self,
        limits: ListenerLimits,
        hosts: Hosts,
        refused: Callable[[str], None],
        tls: Tls | None = None,
    ) -> None:
        """Admit clients within `limits` that call one of `hosts`; report refusals to `refused`.

        Without `tls` the listener serves plain HTTP.
        """
        self._limits = limits
        self._hosts = hosts
        self._tls = tls
        self._context = tls.context if tls else None
        self._refused = refused
        self._connections = Connections[HttpConnection](
            limits.connections, limits.new, limits.new_per_peer
        )
        self._bodies = Bodies[HttpConnection](limits.bodies_bytes)
        self._logged_at: dict[str, float] = {}
        self._paths: Paths = {}
        self._left = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._connections)

    @property
    def scheme(self) -> str:
        """Scheme of the listener's URLs."""
        return "https" if self._tls else "http"

    def serves(self, paths: Paths) -> None:
        """Pass on calls to these paths from now on."""
        self._paths = paths

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled, then end the connections in their handshake."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listener)
                except OSError as exc:
                    log.warning("cannot accept a connection, trying again", why=str(exc))
                    self._make_room("")
                    await asyncio.sleep(_REST_S)
                    continue
                if not self._make_room(address[0]):
                    accepted.close()
                    self._log("connections", "all connections are being answered", address[0])
                    continue
                connection = HttpConnection(
                    self, self._limits, accepted, address[0], self._current()
                )
                self._connections.add(connection)
                tasks.create_task(self._connect(connection, accepted))

    async def _connect(self, connection: HttpConnection, accepted: socket.socket) -> None:
        loop, tls = asyncio.get_running_loop(), connection.tls
        try:
            if tls is None:
                await loop.connect_accepted_socket(lambda: connection, accepted)
            else:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    accepted,
                    ssl=tls,
                    ssl_handshake_timeout=self._limits.request_s,
                    ssl_shutdown_timeout=_CLOSING_S,
                )
        except Exception as exc:  # noqa: BLE001 - ends this connection: too slow, or not TLS.
            self._connections.remove(connection)
            self._log("connection", str(exc) or type(exc).__name__, connection.peer)

    def _make_room(self, peer: str) -> bool:
        """Make room for a connection of a peer; return False if every connection is busy."""
        if self._connections.is_full(peer) or not peer:
            victim = self._connections.next_to_go(peer)
            if victim is None:
                return False
            self._connections.remove(victim)
            victim.abort()
        return True

    def _current(self) -> ssl.SSLContext | None:
        """Return the context of new connections; end idle connections when it was replaced."""
        context = self._tls.context if self._tls else None
        if context is not self._context:
            self._context = context
            for connection in self._connections.idle:
                connection.abort()
        return context

    async def close(self, patience_s: float) -> None:
        """End all connections; busy ones once they are answered, or after `patience_s` seconds."""
        for connection in self._connections:
            connection.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while any(
                    connection.stage is ConnectionStage.BUSY for connection in self._connections
                ):
                    self._left.clear()
                    await self._left.wait()
        for connection in self._connections:
            connection.abort()

    def admit(
        self, connection: HttpConnection, request: HttpRequest, *, is_first: bool
    ) -> CheckFailure | None:
        """Return the reason to refuse a request whose head has arrived; None to read the body."""
        self._connections.begin(connection)
        refused = self._refusal(request, connection, is_first=is_first)
        if refused is None and request.body_bytes:
            refused = self._take(connection, request.body_bytes)
        if refused is not None:
            self._log(refused.reason, refused.message, connection.peer)
        return refused

    def on_body_read(self, connection: HttpConnection) -> None:
        """Handle a body that has arrived."""
        self._bodies.arrived(connection)

    def answer(self, request: HttpRequest) -> Answered:
        """Return the answer to a request."""
        return answer(self._paths, request)

    def on_answered(self, connection: HttpConnection) -> bool:
        """Handle an answer on its way; return whether the connection may be used again."""
        self._bodies.remove(connection)
        self._connections.end(connection)
        return self._limits.lifetime_s is None and connection.tls is self._context

    def on_closed(self, connection: HttpConnection) -> None:
        """Handle a connection that is closed."""
        self._bodies.remove(connection)
        self._connections.remove(connection)
        self._left.set()

    def _refusal(
        self, request: HttpRequest, connection: HttpConnection, *, is_first: bool
    ) -> CheckFailure | None:
        if connection.tls is not self._current():
            problem = "the server's certificates or CA were replaced; reconnect"
            return CheckFailure(HTTPStatus.FORBIDDEN, "replaced", problem)
        if self._tls is not None and is_first:
            refused = self._tls.refused_name(connection.certificate)
            if refused is not None:
                return CheckFailure(HTTPStatus.FORBIDDEN, "name", refused)
        target = request.path if self._limits.queries else request.target
        return refusal(request.method, target, request.headers, self._hosts, self._limits.bodies)

    def _take(self, connection: HttpConnection, size: int) -> CheckFailure | None:
        """Admit a body, aborting clients that send theirs slowly; return a failure without room."""
        while self._bodies.is_full(size):
            victim = self._bodies.next_to_go()
            if victim is None:
                problem = "too many large calls at a time; try again"
                return CheckFailure(HTTPStatus.SERVICE_UNAVAILABLE, "busy", problem)
            self._bodies.remove(victim)
            victim.abort()
        self._bodies.add(connection, size)
        return None

    def _log(self, reason: str, message: str, peer: str) -> None:
        self._refused(reason)
        now = asyncio.get_running_loop().time()
        if now >= self._logged_at.get(reason, -_LOG_EVERY_S) + _LOG_EVERY_S:
            self._logged_at[reason] = now
            log.warning("call refused", why=message, peer=peer)


def answer(paths: Paths, request: HttpRequest) -> Answered:
    """Return the answer of a path's handler, or an error without a handler."""
    path = request.path
    found = paths.get(path) or paths.get(path[: path.find("/", 1) + 1])
    if found is None:
        return error(HTTPStatus.NOT_FOUND, f"{path} is not served here", is_last=True)
    method, handler = found
    if request.method not in (method, "HEAD" if method == "GET" else method):
        problem = f"{path} takes {method}, not {request.method}"
        return error(HTTPStatus.METHOD_NOT_ALLOWED, problem, is_last=True)
    try:
        answered = handler(request)
    except Exception as exc:  # noqa: BLE001 - kube-scheduler gets an error, and retries the pod
        return _failed(path, exc)
    return answered if isinstance(answered, HttpResponse) else _awaited(path, answered)


async def _awaited(path: str, answered: Awaitable[HttpResponse]) -> HttpResponse:
    try:
        return await answered
    except Exception as exc:  # noqa: BLE001 - the same
        return _failed(path, exc)


def _failed(path: str, exc: Exception) -> HttpResponse:
    if isinstance(exc, InvalidInput):
        return error(HTTPStatus.BAD_REQUEST, str(exc))
    if isinstance(exc, MemoryError):
        log.error("no memory for a call", path=path, exc_info=exc)
        return error(HTTPStatus.INTERNAL_SERVER_ERROR, "out of memory", is_last=True)
    return error(HTTPStatus.INTERNAL_SERVER_ERROR, str(take_note("http", path, exc)))


_BACKLOG = 1024


@asynccontextmanager
async def listening(
    paths: Paths, address: tuple[str, int], shutdown_s: float, access: Access
) -> AsyncIterator[str]:
    """Serve paths, and yield their base URL; then let requests in flight finish.

    A request whose client has disconnected is cancelled. Port 0 stands for a free port.

    Raises:
        ConfigurationError: the port is taken, or the address is not an address of this machine.
    """
    access.serves(paths)
    with _listener(address) as listener:
        host, port = listener.getsockname()[:2]
        async with asyncio.TaskGroup() as tasks:
            accepting = tasks.create_task(access.accept(listener))
            try:
                where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                yield f"{access.scheme}://{where}"
            finally:
                accepting.cancel()
    await access.close(shutdown_s)


def _listener(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as exc:
        problem = f"cannot listen on {address[0]}:{address[1]}: {exc.strerror}"
        raise ConfigurationError(problem) from exc
    listener.settimeout(0)
    return listener
