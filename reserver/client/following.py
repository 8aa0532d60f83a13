"""Watches that go on when the connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any, TypeVar

import grpc

from reserver.base.backoff import Backoff
from reserver.client import messages
from reserver.client.connection import PAUSES_S, REPEATED, Connection
from reserver.client.values import ChangeKind

T = TypeVar("T")

_BOOKMARK = "KIND_BOOKMARK"


async def follow(
    connection: Connection,
    method: Callable[..., Any],
    request: Any,  # noqa: ANN401 - of any watch
    read: Callable[[Any], tuple[str, T]],
) -> AsyncIterator[tuple[ChangeKind, T]]:
    """Yield all that is there as ADDED, and then each change, for ever.

    If the connection was broken for too long, all is yielded again as ADDED, and what is gone
    meanwhile as DELETED.

    Args:
        connection: to the server.
        method: the watch.
        request: what to send; its token is set here.
        read: returns the id of what a message is about, and what to yield of it.

    Raises:
        CallFailed: it may not be watched.
    """
    known: dict[str, T] = {}
    backoff = Backoff(*PAUSES_S)
    loop = asyncio.get_running_loop()
    lost_at: float | None = None
    while True:
        there: set[str] = set()
        try:
            async for message in method(request, metadata=connection.metadata()):
                backoff.succeeded()
                lost_at = None
                request.resume_token = message.resume_token or request.resume_token
                kind = message.Kind.Name(message.kind)
                if kind == _BOOKMARK:
                    for gone in [known.pop(each) for each in known.keys() - there]:
                        yield ChangeKind.DELETED, gone
                    continue
                change = ChangeKind(kind.removeprefix("KIND_"))
                id_, item = read(message)
                there.add(id_)
                if change is ChangeKind.DELETED:
                    known.pop(id_, None)
                else:
                    known[id_] = item
                yield change, item
        except grpc.aio.AioRpcError as exc:
            if exc.code() is grpc.StatusCode.OUT_OF_RANGE:
                request.resume_token = ""
            elif exc.code() not in {*REPEATED, grpc.StatusCode.RESOURCE_EXHAUSTED}:
                raise messages.failure(exc) from exc
            else:
                lost_at = lost_at or loop.time()
                connection.tell(messages.failure(exc), loop.time() - lost_at, inf)
        await backoff.sleep()
