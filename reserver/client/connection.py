"""The connections of both clients, with deadlines and repetition of failed calls."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import grpc

from reserver.base.pacer import Backoff
from reserver.client.call_errors import CallFailed, FailedCall, as_failure
from reserver.errors import InvalidInput

DEADLINE_S = 10.0
"""Timeout of a call with its repetitions, in seconds."""

PAUSES_S = (0.1, 2.0)
"""The longest wait after the first failure, and after any, in seconds."""

REPEATED = {grpc.StatusCode.UNAVAILABLE}

Retrying = Callable[[CallFailed, float, float], None]
"""Called before a repetition with the error, the elapsed and the remaining seconds."""


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address or a Unix socket."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTerms:
    """The address of Reserver, and the caller's credentials and timeouts (`Client.__init__`).

    Raises:
        ValueError: a token without TLS.
    """

    address: str
    token: str | Callable[[], str] = ""
    root_certificates: bytes | None = None
    client_certificate: tuple[bytes, bytes] | None = None
    server_name: str = ""
    deadline_s: float = DEADLINE_S
    connect_s: float = DEADLINE_S
    retrying: Retrying | None = None

    def __post_init__(self) -> None:
        """Refuse a token without TLS, except on loopback."""
        if self.token and self.root_certificates is None and not is_loopback(self.address):
            problem = f"a token is sent to {self.address} over TLS only"
            raise ValueError(f"{problem}: give root_certificates")

    @property
    def options(self) -> list[tuple[str, Any]]:
        """The options of the channel."""
        options: list[tuple[str, Any]] = [
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
        ]
        if self.server_name:
            options.append(("grpc.ssl_target_name_override", self.server_name))
        return options

    @property
    def credentials(self) -> grpc.ChannelCredentials | None:
        """The credentials of the channel; None without TLS."""
        if self.root_certificates is None:
            return None
        return grpc.ssl_channel_credentials(
            self.root_certificates, *(self.client_certificate or ())
        )

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of each call, with the caller's token."""
        token = self.token() if callable(self.token) else self.token
        if not (token.isascii() and token.isprintable()):
            remedy = "write the token alone, such as `kubectl create token NAME` prints it"
            raise InvalidInput("token", "has a line break, or characters that no token has", remedy)
        return (("authorization", f"Bearer {token}"),) if token else ()

    def notify(self, error: CallFailed, waited_s: float, left_s: float) -> None:
        """Call `retrying` before a repetition."""
        if self.retrying is not None:
            self.retrying(error, waited_s, left_s)


@dataclass(slots=True)
class Attempts:
    """The attempts of one call, with their timeouts and pauses."""

    terms: ConnectionTerms
    began: float
    _backoff: Backoff = field(default_factory=lambda: Backoff(*PAUSES_S))

    def left_s(self, now: float) -> float:
        """Return the timeout of an attempt that begins at `now`, in seconds."""
        return max(self.began + self.terms.deadline_s - now, 0.0)

    def pause_s(self, failed: FailedCall, now: float) -> float:
        """Return the pause after a failed attempt, in seconds.

        Raises:
            CallFailed: the failure is final, or the deadline leaves no time for another attempt.
        """
        error, pause, deadline_s = (
            as_failure(failed),
            self._backoff.failed(),
            self.terms.deadline_s,
        )
        waited = now - self.began
        # An error with a reason comes from Reserver itself, which is reachable but not ready.
        most = deadline_s if error.reason else min(deadline_s, self.terms.connect_s)
        if most < deadline_s:
            pause = min(pause, most - waited)  # This leaves time for a last attempt.
        if failed.code() not in REPEATED or pause <= 0 or waited + pause >= deadline_s:
            raise error
        self.terms.notify(error, waited + pause, most - waited)
        return pause


class Connection:
    """A channel to Reserver, with the caller's credentials.

    Attributes:
        terms: its address, credentials and timeouts.
        channel: the channel for stubs.
    """

    def __init__(self, terms: ConnectionTerms, channels: Any = grpc.aio) -> None:  # noqa: ANN401
        self.terms = terms
        self.channel = (
            channels.insecure_channel(terms.address, terms.options)
            if terms.credentials is None
            else channels.secure_channel(terms.address, terms.credentials, terms.options)
        )

    async def close(self) -> None:
        """Close the channel."""
        await self._answer(self.channel.close())

    async def call(self, method: Callable[..., Any], request: object) -> Any:  # noqa: ANN401
        """Call a method, repeatedly until a final answer or the deadline.

        Raises:
            CallFailed: the call was refused, or not answered in time.
        """
        attempts = Attempts(self.terms, time.monotonic())
        while True:
            left = attempts.left_s(time.monotonic())
            try:
                return await self._answer(
                    method(request, timeout=left, metadata=self.terms.metadata())
                )
            except grpc.RpcError as exc:
                pause = attempts.pause_s(exc, time.monotonic())
            await self.sleep(pause)

    async def pages(
        self,
        method: Callable[..., Any],
        request: Any,  # noqa: ANN401 - of any list
    ) -> AsyncIterator[Any]:
        """Yield all pages of a list; sets `page_token` of the request.

        Raises:
            CallFailed: a call failed, as in `call`.
        """
        while True:
            page = await self.call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def messages(self, stream: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - of any watch
        """Yield the messages of a stream."""
        async for message in stream:
            yield message

    async def sleep(self, pause_s: float) -> None:
        """Wait, in seconds."""
        await asyncio.sleep(pause_s)

    async def shield(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to its end, even if the caller is cancelled."""
        await asyncio.shield(work)

    async def _answer(self, call: Any) -> Any:  # noqa: ANN401
        return await call


class SyncConnection(Connection):
    """A channel to Reserver with blocking calls: its coroutines never suspend (`done`)."""

    def __init__(self, terms: ConnectionTerms) -> None:
        super().__init__(terms, grpc)

    async def messages(self, stream: Any) -> AsyncIterator[Any]:  # noqa: ANN401
        """Yield the messages of a stream."""
        for message in stream:
            yield message

    async def sleep(self, pause_s: float) -> None:
        """Wait, in seconds."""
        time.sleep(pause_s)  # noqa: ASYNC251 - there is no event loop to block

    async def shield(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; a blocking caller cannot be cancelled."""
        await work

    async def _answer(self, call: Any) -> Any:  # noqa: ANN401
        return call
