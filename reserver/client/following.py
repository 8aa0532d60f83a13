"""A watch that goes on when the connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any

import grpc

from reserver.base.backoff import Backoff
from reserver.client import messages
from reserver.client.connection import PAUSES_S, REPEATED, Connection
from reserver.client.values import Change, ChangeKind, ReservationInfo
from reserver.v1 import reservation_pb2 as pb

_RESUMED = {*REPEATED, grpc.StatusCode.RESOURCE_EXHAUSTED}


async def follow(
    connection: Connection, watch: Callable[..., Any], request: pb.WatchRequest
) -> AsyncIterator[Change]:
    """Yield all that is there as ADDED, and then each change, for ever.

    If the connection was broken for too long, all is yielded again as ADDED, and what is gone
    meanwhile as DELETED. The token of the request is set here.

    Raises:
        CallFailed: it may not be watched.
    """
    known: dict[str, ReservationInfo] = {}
    backoff = Backoff(*PAUSES_S)
    loop = asyncio.get_running_loop()
    lost_at: float | None = None
    while True:
        there: set[str] = set()
        try:
            async for message in watch(request, metadata=connection.metadata()):
                backoff.succeeded()
                lost_at = None
                request.resume_token = message.resume_token or request.resume_token
                if message.kind == pb.WatchResponse.KIND_BOOKMARK:
                    for gone in [known.pop(each) for each in known.keys() - there]:
                        yield Change(ChangeKind.DELETED, gone)
                    continue
                kind = ChangeKind(message.Kind.Name(message.kind).removeprefix("KIND_"))
                one = messages.read_reservation(message.reservation)
                there.add(one.id)
                if kind is ChangeKind.DELETED:
                    known.pop(one.id, None)
                else:
                    known[one.id] = one
                yield Change(kind, one)
        except grpc.aio.AioRpcError as exc:
            if exc.code() is grpc.StatusCode.OUT_OF_RANGE:
                request.resume_token = ""
            elif exc.code() not in _RESUMED:
                raise messages.failure(exc) from exc
            else:
                lost_at = lost_at or loop.time()
                connection.tell(messages.failure(exc), loop.time() - lost_at, inf)
        await backoff.sleep()
