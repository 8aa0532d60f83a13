"""A small client of an API server."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp
import msgspec

from reserver.errors import ApiError
from reserver.k8s.objects.objects import Status, WatchEvent

JSON = "application/json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_LONGEST_LINE = 4 * 1024 * 1024
"""Bound on a watch event, in bytes: more than the largest object."""

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)
_TIMEOUT = aiohttp.ClientTimeout(total=30)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and credentials of an API server.

    Attributes:
        url: scheme, host and port.
        headers: the headers of each request, including credentials.
        context: the TLS context; None for plain HTTP.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None


class ApiClient:
    """A client of an API server."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self._session = session
        self._endpoint = endpoint

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request, and return the body of the answer.

        Raises:
            ApiError: the server refused, or did not answer.
        """
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._open(method, path, query, data=data, media=media) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ApiError(0, "", str(error)) from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _error(response.status, answer)
        return answer

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[WatchEvent]:
        """Yield the events of a watch until it ends.

        Raises:
            ApiError: the server refused, or the connection broke.
        """
        try:
            async with self._open(
                "GET", path, {"watch": "1", **query}, timeout=_NO_TIMEOUT
            ) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise _error(response.status, await response.read())
                while line := await response.content.readline():
                    yield msgspec.json.decode(line, type=WatchEvent)
        except aiohttp.ClientError as error:
            raise ApiError(0, "", str(error)) from error

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        data: bytes | None = None,
        media: str = JSON,
        timeout: aiohttp.ClientTimeout = _TIMEOUT,
    ) -> aiohttp.client._RequestContextManager:
        return self._session.request(
            method,
            self._endpoint.url + path,
            params=query,
            data=data,
            headers={**self._endpoint.headers, "Content-Type": media},
            ssl=self._endpoint.context or True,
            timeout=timeout,
            read_bufsize=_LONGEST_LINE,
        )


def _error(code: int, body: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        status = Status(message=body.decode(errors="replace"))
    return ApiError(code, status.reason, status.message)
