"""Idempotent requests: a request that repeats another one gets the result of the first."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cachetools import TTLCache

from reserver.errors import InvalidInput, ReserverError
from reserver.grpc.concurrency import caller
from reserver.reservations.reservation import Ref
from reserver.v1 import reservation_pb2 as pb

MOST_REQUEST_ID = 64

_REMEMBERED_S = 600.0
"""How long a request id is known, in seconds: what it wrote may be over and deleted meanwhile."""

_REMEMBERED_BYTES = 64 * 2**20
"""What is remembered of reservations that were created with a request id takes so much."""

_LEAST_BYTES = 1024
"""What is remembered of one reservation beside its message."""

Request: TypeAlias = pb.CreateRequest | pb.CreateSetRequest
Outcome: TypeAlias = "asyncio.Task[ReserverError | None]"


@dataclass(frozen=True, slots=True)
class CreationCall:
    """A request to create that is under way, or done.

    Attributes:
        digest: of the request, to distinguish it from another one of the same id.
        refs: where it is written.
        shown: how it was in the beginning; decoded messages would take ten times as much.
        task: ends when it is known whether it was written; None for what was there before.
    """

    digest: bytes
    refs: tuple[Ref, ...]
    shown: tuple[bytes, ...]
    task: Outcome | None

    @property
    def size(self) -> int:
        """What it takes at most, in bytes."""
        return sum(_LEAST_BYTES + len(one) for one in self.shown)


class IdempotentRequests:
    """What requests with an id have begun, by their callers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._begun: TTLCache[tuple[str, str], CreationCall] = TTLCache(
            _REMEMBERED_BYTES, _REMEMBERED_S, clock, lambda begun: begun.size
        )

    def before(self, request: Request) -> CreationCall | None:
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

    def remember(self, request: Request, begun: CreationCall) -> None:
        """Remember what a request has begun, if it has an id."""
        if key := _key(request):
            self._begun[key] = begun

    def forget(self, request: Request, begun: CreationCall) -> None:
        """Forget what has failed: it may be tried again."""
        key = _key(request)
        if key and self._begun.get(key) is begun:
            del self._begun[key]


def digest_of(request: Request) -> bytes:
    """Return what distinguishes a request from another one of the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _key(request: Request) -> tuple[str, str] | None:
    name = request.request_id
    if len(name) > MOST_REQUEST_ID:
        problem = f"{len(name)} characters are too many"
        raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
    return (caller.get(), name) if name else None
