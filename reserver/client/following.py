"""A watch that resumes after its connection breaks."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from math import inf
from typing import Any

import grpc

from reserver.base.pacer import Backoff
from reserver.client import messages
from reserver.client.call_errors import FailedCall, as_failure
from reserver.client.connection import PAUSES_S, REPEATED, Connection, ConnectionTerms
from reserver.client.values import Change, ChangeKind, ReservationInfo
from reserver.v1 import reservation_pb2 as pb

_RESUMED = {*REPEATED, grpc.StatusCode.RESOURCE_EXHAUSTED}


class Following:
    """The state of a watch across connections.

    If the connection was broken for too long, the watch shows all reservations again as ADDED, and
    those deleted meanwhile as DELETED. This class sets `resume_token` of the request.
    """

    def __init__(self, request: pb.WatchRequest, terms: ConnectionTerms) -> None:
        self._request = request
        self._terms = terms
        self._known: dict[str, ReservationInfo] = {}
        self._there: set[str] = set()
        self._backoff = Backoff(*PAUSES_S)
        self._lost_at: float | None = None

    def begins(self) -> None:
        """Record the start of a stream."""
        self._there = set()

    def changes(self, message: pb.WatchResponse) -> Iterator[Change]:
        """Yield the changes of a message of the stream."""
        self._backoff.succeeded()
        self._lost_at = None
        self._request.resume_token = message.resume_token or self._request.resume_token
        if message.kind == pb.WatchResponse.KIND_BOOKMARK:
            for gone in [self._known.pop(each) for each in self._known.keys() - self._there]:
                yield Change(ChangeKind.DELETED, gone)
            return
        kind = ChangeKind(message.Kind.Name(message.kind).removeprefix("KIND_"))
        one = messages.read_reservation(message.reservation)
        self._there.add(one.id)
        if kind is ChangeKind.DELETED:
            self._known.pop(one.id, None)
        else:
            self._known[one.id] = one
        yield Change(kind, one)

    def breaks(self, failed: FailedCall, now: float) -> None:
        """Record the failure of a stream.

        Raises:
            CallFailed: the failure is final.
        """
        if failed.code() is grpc.StatusCode.OUT_OF_RANGE:
            self._request.resume_token = ""
            return
        error = as_failure(failed)
        if failed.code() not in _RESUMED:
            raise error
        self._lost_at = self._lost_at or now
        self._terms.notify(error, now - self._lost_at, inf)

    def pause_s(self) -> float:
        """Return the pause before the stream is resumed, in seconds."""
        return self._backoff.failed()


async def follow(
    connection: Connection, watch: Callable[..., Any], request: pb.WatchRequest
) -> AsyncGenerator[Change, None]:
    """Yield all reservations as ADDED, and then each change, until the iterator is closed.

    Raises:
        CallFailed: the watch was refused.
    """
    following = Following(request, connection.terms)
    while True:
        following.begins()
        stream = watch(request, metadata=connection.terms.metadata())
        try:
            async for message in connection.messages(stream):
                for change in following.changes(message):
                    yield change
        except grpc.RpcError as exc:
            following.breaks(exc, time.monotonic())
        finally:
            stream.cancel()
        await connection.sleep(following.pause_s())
