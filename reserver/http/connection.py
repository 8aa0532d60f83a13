"""One connection to an HTTP listener, and how long each stage of it may take."""

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
"""How long a refused body is still read, in seconds: the client reads the refusal only then."""

_AHEAD_BYTES = 2**16
"""How much of further requests may come while one is answered; kube-scheduler sends none."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class CallHandler(Protocol):
    """Whether a connection's requests may be read, and their responses (`access.Access`)."""

    def admit(
        self, connection: HttpConnection, request: HttpRequest, *, is_first: bool
    ) -> CheckFailure | None:
        """Return why a request is refused unread; its head has come."""

    def on_body_read(self, connection: HttpConnection) -> None:
        """Note that a body has come."""

    def answer(self, request: HttpRequest) -> Answered:
        """Return the response."""

    def on_answered(self, connection: HttpConnection) -> bool:
        """Note that a response goes out; return whether the connection may be used again."""

    def on_closed(self, connection: HttpConnection) -> None:
        """Note that a connection is closed."""


class HttpConnection(asyncio.Protocol):
    """An HTTP connection that is closed when something takes too long.

    Attributes:
        peer: IP address of the client.
        stage: of the connection.
        tls: the context of its handshake; None for plain TCP.
        certificate: of the client, as `ssl.SSLSocket.getpeercert` returns it.
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
        self._reader = Reader(limits, self._head_came, self._whole_came)
        self._wire: asyncio.Transport | None = None
        self._current: HttpRequest | None = None
        self._ahead: deque[HttpRequest] = deque()
        self._asked: HttpRequest | None = None
        self._answering: asyncio.Task[None] | None = None
        self._credit = 0
        self._due: float | None = None
        self._idle_since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._life_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._is_ending = False

    def abort(self) -> None:
        """Close it at once, whatever its stage."""
        if self._wire is not None:
            self._wire.abort()
        else:
            with suppress(OSError):  # It may be gone already.
                self._accepted.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Close it, once what is being answered is."""
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
        self._look()

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002 - the protocol's
        """Give up what it has asked for."""
        for timer in (self._timer, self._life_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._asked = None
        self._ahead.clear()
        self._reader.close()
        self._access.on_closed(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes: of a request within its time, and little more while one is answered."""
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
        except Exception as exc:  # noqa: BLE001 - a fault of ours costs this connection
            if self._answering is None:
                self._current = self._asked = None
            self._refuse(str(take_note("http", "the head of a request", exc)))
        self._answer()

    def _refuse(self, why: str) -> None:
        """Read no further; tell why, once what was asked before is answered."""
        self._is_ending = True
        if self._current is None:
            self._write(error(HTTPStatus.BAD_REQUEST, why), is_last=True)
            self._linger()

    def _expect(self) -> None:
        """Expect the rest of a request within its time; a timer for each would cost more."""
        self._due = self._loop.time() + self._limits.request_s
        if self._timer is None or self._timer.when() > self._due:
            self._look()

    def _look(self) -> None:
        """Close it if a request is overdue, or it has been idle for long."""
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
            self._timer = self._loop.call_at(limit, self._look)
        else:
            self.abort()

    def _head_came(self, request: HttpRequest) -> None:
        if self._is_ending:
            request.is_wanted = False
        elif self._current is None:
            self._take(request)
        else:
            self._ahead.append(request)

    def _take(self, request: HttpRequest) -> None:
        """Have a request let in, or refuse it; its body may not have come yet."""
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
            self._whole_came(request)
        elif request.headers.get("expect", "").lower() == "100-continue" and self._wire:
            self._wire.write(_CONTINUE)

    def _whole_came(self, request: HttpRequest) -> None:
        if request is not self._current:
            return
        self._due = None
        if request.is_wanted:
            self._access.on_body_read(self)
            self._asked = request
        elif self._wire is not None:
            self._wire.close()

    def _answer(self) -> None:
        """Answer what was asked, at once if nothing has to be waited for."""
        if self._asked is None:
            return
        request, self._asked = self._asked, None
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
        """Take the next request, if it has come in advance."""
        if self._ahead:
            self._take(self._ahead.popleft())
            self._loop.call_soon(self._answer)  # Other work comes between.
        is_coming = self._current is None or not self._current.is_whole
        if self._reader.is_within and is_coming:
            self._expect()

    def _write(self, answer: HttpResponse, *, is_last: bool, is_head: bool = False) -> None:
        if self._wire is None or self._wire.is_closing():
            return
        status = answer.status
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(answer.body)}\r\n"
            f"Date: {_date(int(time()))}\r\n"
        )
        end = "Connection: close\r\n\r\n" if is_last else "\r\n"
        self._wire.write((head + end).encode("latin-1") + (b"" if is_head else answer.body))

    def _linger(self) -> None:
        """Close it once the rest of a request has been read in vain, or after a while."""
        self._is_ending = True
        linger_s = _LINGER_S if self._limits.lifetime_s is None else 0.0
        self._loop.call_later(linger_s, self._end)

    def _end(self) -> None:
        """Close it once all that was written has been read."""
        self._is_ending = True
        if self._wire is not None:
            self._wire.close()

    def pause_writing(self) -> None:
        """Wait for the client to read, within a time; meanwhile read no other request."""
        self._unread_timer = self._loop.call_later(self._limits.unread_s, self.abort)
        if self._wire is not None:
            self._wire.pause_reading()

    def resume_writing(self) -> None:
        """Continue: the client has read."""
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
