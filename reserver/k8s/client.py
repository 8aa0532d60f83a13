"""A client of the Kubernetes API that returns raw bytes.

The models of the kubernetes package take many times as long to decode as typed structs with the few
fields that decisions need (docs/performance.md), so this client sends the requests itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Self

import aiohttp

from reserver.errors import ApiError
from reserver.k8s.api_errors import connection_error, phrase_of, refusal
from reserver.k8s.credentials import Credentials
from reserver.k8s.http_client import ERROR, Exchange, RequestCounts, notice_loss
from reserver.k8s.objects.objects import encode

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Content type that merges list items by their key, such as the type of a condition."""

_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
_MAX_EVENT_BYTES = 16 * 2**20
CONNECTIONS = 64
"""Most connections of one client; further requests wait for a free connection."""

_UNFROZEN = tuple(
    f"/apis/{group}.k8s.io/" for group in ("coordination", "authentication", "authorization")
)
"""Writes that `freeze` never stops, as they do not depend on any cached object."""

_HEADERS = {
    "Accept": "application/json",
    # Compression would cost the API server more than the traffic inside a cluster is worth.
    "Accept-Encoding": "identity",
    "User-Agent": "reserver",
}


class ApiClient:
    """A client of the Kubernetes API that returns raw bytes.

    All calls raise ApiError if the API server refuses, or does not answer.

    Attributes:
        request_counts: number and results of its requests.
    """

    def __init__(self, credentials: Credentials, connections: int = CONNECTIONS) -> None:
        """Connect with these credentials, over at most `connections` connections."""
        self._credentials = credentials
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self.request_counts = RequestCounts()
        self._frozen = ""
        self._writes: set[asyncio.Timeout] = set()
        self._exchange = Exchange(credentials, connections, self.request_counts)

    def freeze(self, why: str) -> None:
        """Abort all writes in flight and refuse further ones, except for Leases and reviews."""
        self._frozen = why
        for each in self._writes:
            each.reschedule(0.0)

    @property
    def server(self) -> str:
        """Base URL of the API server."""
        return self._credentials.server

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        # Never aiohttp's own context: `serve` prevents it from loading CAs. Even a plain HTTP
        # server may have a proxy with TLS.
        tls = self._credentials.tls or ssl.create_default_context()
        connector = aiohttp.TCPConnector(
            ssl=tls, limit=self._connections, socket_factory=_keep_alive
        )
        traces = [self.request_counts.trace()]
        self._session = aiohttp.ClientSession(
            connector=connector, headers=_HEADERS, trace_configs=traces
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        self._exchange.close()
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return an object or a list as JSON."""
        return await self._send("GET", path, params=params)

    async def get_bounded(
        self, path: str, most_bytes: int, params: Mapping[str, str] | None = None
    ) -> bytes:
        """Return a list as JSON; raise ApiError (TooLarge) if it exceeds `most_bytes`."""
        return await self._send("GET", path, params=params, most_bytes=most_bytes)

    async def create(self, path: str, body: object) -> bytes:
        """Create an object, for example a Binding; return the created object."""
        return await self._send("POST", path, body=body)

    async def replace(self, path: str, body: object) -> bytes:
        """Replace an object with the resourceVersion of the body; return the new object."""
        return await self._send("PUT", path, body=body)

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        """Patch an object; return the new object."""
        return await self._send("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, options: object) -> bytes:
        """Delete an object, with DeleteOptions; return its last state, or a Status."""
        return await self._send("DELETE", path, body=options)

    async def watch(
        self, path: str, params: Mapping[str, str], idle_limit_s: float
    ) -> AsyncGenerator[bytes]:
        """Yield an empty line, then the lines of a watch until the API server ends it.

        The empty line shows that the API server has accepted the watch: the first event may arrive
        a minute later.

        Args:
            path: path of the collection.
            params: query of the watch, without ``watch`` itself.
            idle_limit_s: longest silence of the connection, in seconds.

        Raises:
            ApiError: the API server refused the watch, or the connection broke or fell silent.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=idle_limit_s)
        query = {"watch": "true", **params}
        with _as_api_error():
            async with self._request("GET", path, query, timeout) as response:
                await _raise_for_status(response)
                yield b""
                partial_line = bytearray()
                while chunk := await response.content.readany():
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        line, partial_line = bytes(partial_line + end), bytearray()
                        yield line
                    partial_line += rest
                    if len(partial_line) > _MAX_EVENT_BYTES:
                        raise ApiError(0, "TooLarge", "a watch event exceeds 16 MiB")

    async def web_socket(
        self, path: str, params: Mapping[str, str], protocol: str
    ) -> aiohttp.ClientWebSocketResponse:
        """Return a WebSocket to a subresource that accepts one, such as ``portforward``."""
        session, headers = await self._prepared()
        with _as_api_error():
            return await session.ws_connect(
                self._credentials.server + path,
                params=params,
                protocols=(protocol,),
                headers={**headers, "Accept": "*/*"},  # A kubelet sends no JSON here.
                proxy=self._credentials.proxy,
                server_hostname=self._credentials.server_name,
            )

    async def _prepared(self) -> tuple[aiohttp.ClientSession, dict[str, str]]:
        """Return the connection pool, and the Authorization header."""
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with`")
        authorization = await self._credentials.authorization()
        return self._session, {"Authorization": authorization} if authorization else {}

    async def _send(
        self,
        method: str,
        path: str,
        **request: Any,  # noqa: ANN401 - the arguments of `_sent`
    ) -> bytes:
        """Send a request; `freeze` aborts it if it is a write."""
        if method == "GET" or path.startswith(_UNFROZEN):
            return await self._sent(method, path, **request)
        if self._frozen:
            raise ApiError(0, "Frozen", self._frozen)
        with _as_api_error():
            async with asyncio.timeout(None) as under_way:
                self._writes.add(under_way)
                try:
                    return await self._sent(method, path, **request)
                finally:
                    self._writes.discard(under_way)

    async def _sent(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        most_bytes: int | None = None,
    ) -> bytes:
        if method == "POST" and not self._credentials.proxy:
            return await self._exchanged(path, encode(body))
        data = None if body is None else encode(body)
        headers = {} if data is None else {"Content-Type": content_type}
        with _as_api_error():
            async with self._request(
                method, path, params, _TIMEOUT, data=data, headers=headers
            ) as response:
                await _raise_for_status(response)
                if most_bytes is None:
                    return await response.read()
                raw = await bounded(response, most_bytes)
                if raw is None:
                    problem = f"the answer to {path} exceeds {most_bytes >> 20} MiB"
                    raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", problem)
                return raw

    async def _exchanged(self, path: str, body: bytes) -> bytes:
        """Return the answer to a POST."""
        _, headers = await self._prepared()
        headers |= _HEADERS | {"Content-Type": "application/json"}
        with _as_api_error():
            async with asyncio.timeout(_TIMEOUT.total):
                answered = await self._exchange.ask("POST", path, headers, body)
        if answered.status >= HTTPStatus.BAD_REQUEST:
            raise refusal(answered.status, phrase_of(answered.status), answered.body)
        return answered.body

    @contextlib.asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's, not a cancel scope
        **kwargs: Any,  # noqa: ANN401 - passed on to aiohttp
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session, headers = await self._prepared()
        headers |= kwargs.pop("headers", {})
        status = 0
        try:
            async with session.request(
                method,
                self._credentials.server + path,
                params=params,
                timeout=timeout,
                headers=headers,
                proxy=self._credentials.proxy,
                server_hostname=self._credentials.server_name,
                **kwargs,
            ) as response:
                status = response.status
                yield response
        finally:
            self.request_counts.by_code[method, str(status or ERROR)] += 1


async def bounded(response: aiohttp.ClientResponse, most_bytes: int) -> bytes | None:
    """Return the body of an answer; None if it exceeds `most_bytes`."""
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > most_bytes:
            response.close()
            return None
    return bytes(raw)


def _keep_alive(address: aiohttp.AddrInfoType) -> socket.socket:
    made = socket.socket(*address[:3])
    notice_loss(made)
    return made


class _as_api_error:  # noqa: N801 - it reads like a statement
    """Raise connection errors of this block as ApiError; a class, as each binding enters one."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, where: object
    ) -> None:
        """End the block."""
        if isinstance(exc, TimeoutError | aiohttp.ClientError | OSError):
            raise connection_error(exc) from exc


async def _raise_for_status(response: aiohttp.ClientResponse) -> None:
    if response.ok:
        return
    raise refusal(response.status, response.reason or "Unknown", await response.read())
