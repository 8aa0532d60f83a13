"""The connection: calls with deadlines, repeated if they fail."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc

from reserver.base.backoff import Backoff
from reserver.client import messages
from reserver.client.values import CallFailed

DEADLINE_S = 10.0
"""How long a call may take, including repetitions, in seconds."""

PAUSES_S = (0.1, 2.0)
"""The longest wait after the first failure, and after any, in seconds."""

REPEATED = {grpc.StatusCode.UNAVAILABLE}

Response = TypeVar("Response")

Retrying = Callable[[CallFailed, float, float], None]
"""Called before a call is repeated: why, and for how many seconds it was tried and will be."""


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine, or in this pod: a loopback one, or a socket."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Connection:
    """A channel to reserver, with the caller's credentials.

    Attributes:
        channel: what stubs are made of.
    """

    def __init__(  # noqa: PLR0913 - what a connection needs
        self,
        address: str,
        *,
        token: str | Callable[[], str] = "",
        root_certificates: bytes | None = None,
        client_certificate: tuple[bytes, bytes] | None = None,
        server_name: str = "",
        deadline_s: float = DEADLINE_S,
        connect_s: float = DEADLINE_S,
        retrying: Retrying | None = None,
    ) -> None:
        """Prepare to connect; `reserver.client.Client` says what the arguments are.

        Raises:
            ValueError: a token without TLS would be sent for all to read.
        """
        if token and root_certificates is None and not is_loopback(address):
            problem = f"a token is sent to {address} over TLS only"
            raise ValueError(f"{problem}: give root_certificates")
        self._deadline_s = deadline_s
        self._connect_s = connect_s
        self._retrying = retrying
        self._token = token
        options: list[tuple[str, Any]] = [
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
        ]
        if server_name:
            options.append(("grpc.ssl_target_name_override", server_name))
        if root_certificates is None:
            self.channel = grpc.aio.insecure_channel(address, options)
        else:
            credentials = grpc.ssl_channel_credentials(
                root_certificates, *(client_certificate or ())
            )
            self.channel = grpc.aio.secure_channel(address, credentials, options)

    async def close(self) -> None:
        """Close it."""
        await self.channel.close()

    async def call(self, method: Callable[..., Awaitable[Response]], request: object) -> Response:
        """Call until there is a final answer, or the deadline has passed.

        Raises:
            CallFailed: there was none, or it is a refusal.
        """
        loop = asyncio.get_running_loop()
        began, backoff = loop.time(), Backoff(*PAUSES_S)
        while True:
            left = max(began + self._deadline_s - loop.time(), 0.0)
            try:
                return await method(request, timeout=left, metadata=self.metadata())
            except grpc.aio.AioRpcError as exc:
                error, pause = messages.failure(exc), backoff.failed()
                waited = loop.time() - began
                # Reserver itself says why it cannot answer yet.
                most = self._deadline_s if error.reason else min(self._deadline_s, self._connect_s)
                if most < self._deadline_s:
                    pause = min(pause, most - waited)  # There is time for a last try.
                if exc.code() not in REPEATED or pause <= 0 or waited + pause >= self._deadline_s:
                    raise error from exc
            self.tell(error, waited + pause, most - waited)
            await asyncio.sleep(pause)

    async def pages(
        self,
        method: Callable[..., Awaitable[Any]],
        request: Any,  # noqa: ANN401 - of any list
    ) -> AsyncIterator[Any]:
        """Yield all pages of a list; the request's token is set here.

        Raises:
            CallFailed: as `call`.
        """
        while True:
            page = await self.call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def tell(self, error: CallFailed, waited_s: float, left_s: float) -> None:
        """Tell that a call is about to be repeated."""
        if self._retrying is not None:
            self._retrying(error, waited_s, left_s)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the caller's credentials."""
        token = self._token() if callable(self._token) else self._token
        return (("authorization", f"Bearer {token}"),) if token else ()
