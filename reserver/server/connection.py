"""One connection to an HTTP listener, and how long each stage of it may take."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web

from reserver.server.connections import Stage

_LINGER_S = 1.0
"""How long a refused body is still read, in seconds: the client reads the refusal only then."""

_AHEAD_BYTES = 2**16
"""How much of further requests may come while one is answered; kube-scheduler sends none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what the clients of a listener may use.

    Attributes:
        connections: in all; beyond it, idle connections give way to new ones.
        new: connections that have not yet sent a complete request head.
        new_per_peer: such connections from one IP address.
        request_s: seconds for a TLS handshake, and for a request from its first byte to its last.
        unread_s: seconds that a client may leave an answer unread.
        idle_s: seconds that a connection may wait for its next request.
        lifetime_s: seconds that it may last, for one request; None for no bound on either.
        headers: header fields of a request.
        header_bytes: bytes of one header field, and of the request line.
        bodies: bytes of a body, by path; other paths accept none.
        queries: whether a path may be followed by a query there: API servers add their timeout.
        bodies_bytes: bytes of all bodies that are read and answered at once.
    """

    connections: int = 2048
    new: int = 100
    new_per_peer: int = 50
    request_s: float = 10.0
    unread_s: float = 10.0
    idle_s: float = 120.0  # kube-scheduler closes after 90: if it closes first, no call is lost.
    lifetime_s: float | None = None
    headers: int = 32
    header_bytes: int = 4096
    bodies: dict[str, int] = field(default_factory=dict)
    queries: bool = False
    bodies_bytes: int = 64 * 2**20


class Connection(web.RequestHandler):
    """An aiohttp connection that is closed when something takes too long.

    aiohttp itself closes idle ones.

    Attributes:
        peer: IP address of the client.
        stage: of the connection.
        tls: the context of its handshake; None for plain TCP.
        certificate: of the client, as `ssl.SSLSocket.getpeercert` returns it.
    """

    __slots__ = (
        "_accepted",
        "_credit",
        "_due",
        "_gone",
        "_life_timer",
        "_limits",
        "_timer",
        "_unread_timer",
        "_wire",
        "certificate",
        "peer",
        "stage",
        "tls",
    )

    def __init__(
        self,
        server: web.Server,
        limits: Limits,
        accepted: socket.socket,
        peer: str,
        tls: ssl.SSLContext | None,
        gone: Callable[[Connection], None],
    ) -> None:
        """Begin a connection.

        Args:
            server: answers its requests.
            limits: of the client.
            accepted: its socket.
            peer: IP address of the client.
            tls: the context for its handshake; None for plain TCP.
            gone: called once it is closed.
        """
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as web.AppRunner allows
            keepalive_timeout=limits.idle_s,
            lingering_time=_LINGER_S if limits.lifetime_s is None else 0.0,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.headers,
            auto_decompress=False,
        )
        self.peer = peer
        self.stage = Stage.NEW
        self.tls = tls
        self.certificate: dict[str, Any] | None = None
        self._accepted = accepted
        self._credit = 0
        self._limits = limits
        self._gone = gone
        self._wire: asyncio.Transport | None = None
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._life_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Close it at once, whatever its stage."""
        if self._wire is not None:
            self._wire.abort()
        else:
            with suppress(OSError):  # It may be gone already.
                self._accepted.shutdown(socket.SHUT_RDWR)

    def head_complete(self, body_bytes: int) -> None:
        """Note that the head of a request has come, and how large its body will be."""
        self._credit = body_bytes + _AHEAD_BYTES

    def request_complete(self) -> None:
        """Note that a whole request has come, or that the rest of it is not wanted."""
        self._due = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start waiting for a request."""
        self._wire = transport  # type: ignore[assignment]
        self.certificate = transport.get_extra_info("peercert")
        if self._limits.lifetime_s is not None:
            self._life_timer = self._loop.call_later(self._limits.lifetime_s, self.abort)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the timers."""
        for timer in (self._timer, self._life_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        self._gone(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes: of a request within its time, and little more while one is answered."""
        if self.stage is Stage.BUSY:
            self._credit -= len(data)
            if self._credit < 0:
                self.abort()
                return
        elif data and self._due is None:
            self._due = self._loop.time() + self._limits.request_s
            if self._timer is None:
                self._timer = self._loop.call_at(self._due, self._look)
        super().data_received(data)

    def _look(self) -> None:
        """Close it if a request is overdue; a timer for each request would cost more."""
        self._timer = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self.abort()

    def pause_writing(self) -> None:
        """Wait for the client to read, within a time."""
        self._unread_timer = self._loop.call_later(self._limits.unread_s, self.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Continue to write: the client has read."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        super().resume_writing()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that cannot be parsed, without logging a traceback."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().handle_error(request, status, exc, message)
        response = web.Response(status=status, text=message)
        response.force_close()
        return response
