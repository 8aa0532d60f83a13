"""Idempotent requests: what one has begun is the answer to each that repeats it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from cachetools import TTLCache

from reserver.errors import InvalidInput
from reserver.grpc.caller import caller

MOST_REQUEST_ID = 64

_REMEMBERED_S = 600.0
"""How long a request id is known, in seconds: what it wrote may be over and deleted meanwhile."""


class IdempotentRequest(Protocol):
    """A message with the id of a request."""

    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:  # noqa: N802 - protobuf's
        """Return it as bytes."""


class IdempotentCall(Protocol):
    """What a request has begun, or done."""

    @property
    def digest(self) -> bytes:
        """What tells the request from another one of the same id (`digest_of`)."""

    @property
    def size(self) -> int:
        """What it takes at most, in bytes."""


B = TypeVar("B", bound=IdempotentCall)


class IdempotentRequests(Generic[B]):
    """What requests with an id have begun, by their callers."""

    def __init__(self, most_bytes: int, clock: Callable[[], float]) -> None:
        """Remember so much at most; `clock` gives unix seconds."""
        self._begun: TTLCache[tuple[str, str], B] = TTLCache(
            most_bytes, _REMEMBERED_S, clock, lambda begun: begun.size
        )

    def before(self, request: IdempotentRequest) -> B | None:
        """Return what an earlier request with this id has begun; None if it is new.

        Raises:
            InvalidInput: the id is too long, or was that of another request.
        """
        key = _key(request)
        begun = self._begun.get(key) if key else None
        if begun is not None and begun.digest != digest_of(request):
            problem = "belongs to another request"
            raise InvalidInput("requestId", problem, "choose one for each request")
        return begun

    def remember(self, request: IdempotentRequest, begun: B) -> None:
        """Remember what a request has begun, if it has an id."""
        if key := _key(request):
            self._begun[key] = begun

    def forget(self, request: IdempotentRequest, begun: B) -> None:
        """Forget what has failed: it may be tried again."""
        key = _key(request)
        if key and self._begun.get(key) is begun:
            del self._begun[key]


def digest_of(request: IdempotentRequest) -> bytes:
    """Return what tells a request from another one of the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _key(request: IdempotentRequest) -> tuple[str, str] | None:
    name = request.request_id
    if len(name) > MOST_REQUEST_ID:
        problem = f"{len(name)} characters are too many"
        raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
    return (caller.get(), name) if name else None
