"""A watch that goes on when the connection breaks."""

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
    """The changes that a watch has shown so far, and how it goes on.

    If the connection was broken for too long, all is shown again as ADDED, and what is gone
    meanwhile as DELETED. The token of the request is set here.
    """

    def __init__(self, request: pb.WatchRequest, terms: ConnectionTerms) -> None:
        self._request = request
        self._terms = terms
        self._known: dict[str, ReservationInfo] = {}
        self._there: set[str] = set()
        self._backoff = Backoff(*PAUSES_S)
        self._lost_at: float | None = None

    def begins(self) -> None:
        """Note that the stream begins, once more perhaps."""
        self._there = set()

    def changes(self, message: pb.WatchResponse) -> Iterator[Change]:
        """Yield what a message of the stream says."""
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
        """Note that the stream broke.

        Raises:
            CallFailed: it may not be resumed.
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
        """Return how long to wait before the stream is resumed, in seconds."""
        return self._backoff.failed()


async def follow(
    connection: Connection, watch: Callable[..., Any], request: pb.WatchRequest
) -> AsyncGenerator[Change, None]:
    """Yield all that is there as ADDED, and then each change, for ever; closing it ends the watch.

    Raises:
        CallFailed: it may not be watched.
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
