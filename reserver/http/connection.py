"""One connection to an HTTP listener, with a time limit for each stage."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Any, Protocol

from reserver.base.quarantine import take_note
from reserver.http import message
from reserver.http.connections import CheckFailure, ConnectionStage
from reserver.http.message import Answered, HttpRequest, HttpResponse, Reader, error

_LINGER_S = 1.0
"""Seconds in which a refused body is still read: the client reads the refusal only afterwards."""

_AHEAD_BYTES = 2**16
"""Bytes of further requests that may arrive during an answer; kube-scheduler sends none."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class CallHandler(Protocol):
    """Decides which requests of a connection are read, and answers them (`access.Access`)."""

    def admit(
        self, connection: HttpConnection, request: HttpRequest, *, is_first: bool
    ) -> CheckFailure | None:
        """Return the reason to refuse a request whose head has arrived; None to read the body."""

    def on_body_read(self, connection: HttpConnection) -> None:
        """Handle a body that has arrived."""

    def answer(self, request: HttpRequest) -> Answered:
        """Return the response."""

    def on_answered(self, connection: HttpConnection) -> bool:
        """Handle a response on its way; return whether the connection may be used again."""

    def on_closed(self, connection: HttpConnection) -> None:
        """Handle a connection that is closed."""


class HttpConnection(asyncio.Protocol):
    """An HTTP connection that is closed when a stage takes too long.

    Attributes:
        peer: IP address of the client.
        stage: stage of the connection.
        tls: the context of its handshake; None for plain TCP.
        certificate: the client's certificate, as `ssl.SSLSocket.getpeercert` returns it.
    """

    def __init__(
        self,
        access: CallHandler,
        limits: message.ListenerLimits,
        accepted: socket.socket,
        peer: str,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Begin a connection; `tls` is the context for its handshake, None for plain TCP."""
        self.peer = peer
        self.stage = ConnectionStage.NEW
        self.tls = tls
        self.certificate: dict[str, Any] | None = None
        self._access = access
        self._limits = limits
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(limits, self._on_head, self._on_request)
        self._wire: asyncio.Transport | None = None
        self._current: HttpRequest | None = None
        self._ahead: deque[HttpRequest] = deque()
        self._complete: HttpRequest | None = None
        self._answering: asyncio.Task[None] | None = None
        self._credit = 0
        self._due: float | None = None
        self._idle_since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._life_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._is_ending = False

    def abort(self) -> None:
        """Close the connection at once, whatever its stage."""
        if self._wire is not None:
            self._wire.abort()
        else:
            with suppress(OSError):  # The socket may be closed already.
                self._accepted.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Close the connection, once the request in progress is answered."""
        self._is_ending = True
        if self.stage is not ConnectionStage.BUSY:
            self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start waiting for a request."""
        self._wire = transport  # type: ignore[assignment]
        self.certificate = transport.get_extra_info("peercert")
        if self._limits.lifetime_s is not None:
            self._life_timer = self._loop.call_later(self._limits.lifetime_s, self.abort)
        self._idle_since = self._loop.time()
        self._check_deadline()

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002 - the protocol's
        """Cancel the request in progress."""
        for timer in (self._timer, self._life_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._complete = None
        self._ahead.clear()
        self._reader.close()
        self._access.on_closed(self)

    def data_received(self, data: bytes) -> None:
        """Read bytes of a request within its time, and few bytes during an answer."""
        if self.stage is ConnectionStage.BUSY:
            self._credit -= len(data)
            if self._credit < 0:
                self.abort()
                return
        elif self._is_ending and self._current is None:
            return
        elif self._due is None:
            self._expect()
        try:
            self._reader.feed(data)
        except message.Malformed as exc:
            self._refuse(str(exc))
        except Exception as exc:  # noqa: BLE001 - a bug of Reserver ends only this connection
            if self._answering is None:
                self._current = self._complete = None
            self._refuse(str(take_note("http", "the head of a request", exc)))
        self._answer()

    def _refuse(self, why: str) -> None:
        """Stop reading; answer with the error, once the request in progress is answered."""
        self._is_ending = True
        if self._current is None:
            self._write(error(HTTPStatus.BAD_REQUEST, why), is_last=True)
            self._linger()

    def _expect(self) -> None:
        """Set the deadline of a request; one timer for each request would cost more."""
        self._due = self._loop.time() + self._limits.request_s
        if self._timer is None or self._timer.when() > self._due:
            self._check_deadline()

    def _check_deadline(self) -> None:
        """Close the connection if a request is overdue, or it was idle for too long."""
        if self._timer is not None:
            self._timer.cancel()
        now = self._loop.time()
        if self._due is not None:
            limit = self._due
        elif self.stage is ConnectionStage.BUSY:
            limit = now + self._limits.request_s
        else:
            limit = self._idle_since + self._limits.idle_s
        if now < limit:
            self._timer = self._loop.call_at(limit, self._check_deadline)
        else:
            self.abort()

    def _on_head(self, request: HttpRequest) -> None:
        request.peer = self.peer
        if self._is_ending:
            request.is_wanted = False
        elif self._current is None:
            self._take(request)
        else:
            self._ahead.append(request)

    def _take(self, request: HttpRequest) -> None:
        """Admit or refuse a request; its body may not have arrived yet."""
        is_first = self.stage is ConnectionStage.NEW
        self._current = request
        self._credit = request.body_bytes + _AHEAD_BYTES
        refused = self._access.admit(self, request, is_first=is_first)
        if refused is not None:
            request.is_wanted = False
            self._due = None
            self._access.on_answered(self)
            self._write(error(refused.status, refused.message), is_last=True)
            self._linger()
        elif request.is_whole:
            self._on_request(request)
        elif request.headers.get("expect", "").lower() == "100-continue" and self._wire:
            self._wire.write(_CONTINUE)

    def _on_request(self, request: HttpRequest) -> None:
        if request is not self._current:
            return
        self._due = None
        if request.is_wanted:
            self._access.on_body_read(self)
            self._complete = request
        elif self._wire is not None:
            self._wire.close()

    def _answer(self) -> None:
        """Answer the complete request, at once if its handler does not wait."""
        if self._complete is None:
            return
        request, self._complete = self._complete, None
        answered = self._access.answer(request)
        if isinstance(answered, HttpResponse):
            self._answered(request, answered)
        else:
            self._answering = self._loop.create_task(self._await(request, answered))

    async def _await(self, request: HttpRequest, answered: Awaitable[HttpResponse]) -> None:
        answer = await answered
        self._answering = None
        self._answered(request, answer)

    def _answered(self, request: HttpRequest, answer: HttpResponse) -> None:
        self._current = None
        is_reusable = self._access.on_answered(self) and not self._is_ending
        is_last = not is_reusable or answer.is_last or request.is_last
        self._write(answer, is_last=is_last, is_head=request.method == "HEAD")
        if answer.then is not None:
            answer.then()
        self._idle_since = self._loop.time()
        if is_last:
            self._end()
        elif self._unread_timer is None:
            self._go_on()

    def _go_on(self) -> None:
        """Take the next request, if it has arrived in advance."""
        if self._ahead:
            self._take(self._ahead.popleft())
            self._loop.call_soon(self._answer)  # Other work runs first.
        is_coming = self._current is None or not self._current.is_whole
        if self._reader.is_within and is_coming:
            self._expect()

    def _write(self, answer: HttpResponse, *, is_last: bool, is_head: bool = False) -> None:
        if self._wire is None or self._wire.is_closing():
            return
        status = answer.status
        head = (
            f"HTTP/1.1 {int(status)} {status.phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(answer.body)}\r\n"
            f"Date: {_date(int(time()))}\r\n"
        )
        end = "Connection: close\r\n\r\n" if is_last else "\r\n"
        self._wire.write((head + end).encode("latin-1") + (b"" if is_head else answer.body))

    def _linger(self) -> None:
        """Close the connection once the rest of a request was read, or after a while."""
        self._is_ending = True
        linger_s = _LINGER_S if self._limits.lifetime_s is None else 0.0
        self._loop.call_later(linger_s, self._end)

    def _end(self) -> None:
        """Close the connection once the client has read the whole answer."""
        self._is_ending = True
        if self._wire is not None:
            self._wire.close()

    def pause_writing(self) -> None:
        """Wait a limited time for the client to read; read no other request meanwhile."""
        self._unread_timer = self._loop.call_later(self._limits.unread_s, self.abort)
        if self._wire is not None:
            self._wire.pause_reading()

    def resume_writing(self) -> None:
        """Continue, as the client has read the answer."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        if self._wire is not None and not self._wire.is_closing():
            self._wire.resume_reading()
            if self._current is None and not self._is_ending:
                self._go_on()


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
