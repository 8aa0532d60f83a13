"""Idempotent requests: a repeated request returns the result of the first."""

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
"""Seconds for which a request id is kept, as its reservation may have ended and gone by then."""

_REMEMBERED_BYTES = 64 * 2**20
"""Bound on the kept results of requests, in bytes."""

_LEAST_BYTES = 1024
"""Estimate of the memory of a reservation in addition to its message, in bytes."""

Request: TypeAlias = pb.CreateRequest | pb.CreateSetRequest
Outcome: TypeAlias = "asyncio.Task[ReserverError | None]"


@dataclass(frozen=True, slots=True)
class CreationCall:
    """A Create request in flight or done.

    Attributes:
        digest: the digest of the request, to detect another request with the same id.
        refs: the refs of its reservations.
        shown: the first messages of its reservations, serialized to a tenth of the memory.
        task: the task of the write; None if an earlier request has written the reservations.
    """

    digest: bytes
    refs: tuple[Ref, ...]
    shown: tuple[bytes, ...]
    task: Outcome | None

    @property
    def size(self) -> int:
        """An upper bound of its memory, in bytes."""
        return sum(_LEAST_BYTES + len(one) for one in self.shown)


class IdempotentRequests:
    """The requests with an id, by caller and id."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._begun: TTLCache[tuple[str, str], CreationCall] = TTLCache(
            _REMEMBERED_BYTES, _REMEMBERED_S, clock, lambda begun: begun.size
        )

    def before(self, request: Request) -> CreationCall | None:
        """Return the call of an earlier request with this id; None if the id is new.

        Raises:
            InvalidInput: the id is too long, or belongs to another request.
        """
        key = _key(request)
        begun = self._begun.get(key) if key else None
        if begun is not None and begun.digest != digest_of(request):
            problem = "belongs to another request"
            raise InvalidInput("requestId", problem, "choose one for each request")
        return begun

    def remember(self, request: Request, begun: CreationCall) -> None:
        """Keep the call of a request, if the request has an id."""
        if key := _key(request):
            self._begun[key] = begun

    def forget(self, request: Request, begun: CreationCall) -> None:
        """Drop a failed call, so that the request may be repeated."""
        key = _key(request)
        if key and self._begun.get(key) is begun:
            del self._begun[key]


def digest_of(request: Request) -> bytes:
    """Return the digest of a request, to detect another request with the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _key(request: Request) -> tuple[str, str] | None:
    name = request.request_id
    if len(name) > MOST_REQUEST_ID:
        problem = f"{len(name)} characters are too many"
        raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
    return (caller.get(), name) if name else None
