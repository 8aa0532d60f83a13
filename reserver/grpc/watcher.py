"""The unread changes of one watch, within bounds: its client may not read for an hour."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import grpc

from reserver.grpc.status_errors import CallError

T = TypeVar("T")

REMEMBERED_BYTES = 32 * 2**20
"""Bound on the changes kept for resuming watches, in bytes."""

QUEUE = 2_000
"""Most unread changes of an open watch; they may take `REMEMBERED_BYTES`."""


class FeedChange(NamedTuple):
    """A change of a reservation; its messages stay serialized, which takes a tenth of the memory.

    Attributes:
        number: the number of the change, from 1.
        before: the serialized message before the change; None if absent.
        after: the serialized message after the change; None if removed.
        size: the size of its messages, in bytes.
    """

    number: int
    before: bytes | None
    after: bytes | None
    size: int


class Watcher:
    """The changes to send to one watcher."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[FeedChange | None] = asyncio.Queue(QUEUE)
        self._first: deque[Any] = deque()
        self._bytes = 0
        self._is_late = False
        self._is_over = False

    def add(self, change: FeedChange) -> None:
        """Queue a change; a full queue ends the watch, for which nothing is kept any more."""
        if self._is_late:
            return
        self._bytes += change.size
        is_large = self._bytes > REMEMBERED_BYTES and not self._queue.empty()
        if self._queue.full() or is_large:
            self._is_late = True
            self._queue = asyncio.Queue(QUEUE)
            self._first.clear()
        else:
            self._queue.put_nowait(change)

    def begin(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items to send before the changes.

        Raises:
            CallError: too many changes were not read meanwhile.
        """
        first = deque(items)
        del items  # This frame would keep them.
        self._first = first
        while first:
            yield first.popleft()
        self._check()

    def end(self) -> None:
        """End the watch."""
        self._is_over = True
        if self._queue.empty():
            self._queue.put_nowait(None)  # Wakes up `next`.

    async def next(self) -> FeedChange:
        """Return the next change.

        Raises:
            CallError: too many changes were not read, or the watch was ended.
        """
        self._check()
        change = await self._queue.get() if not self._is_over else None
        if change is None:
            problem = "the server ends; resume from the last token, or watch without one"
            raise CallError(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", problem)
        self._bytes -= change.size
        return change

    def _check(self) -> None:
        if self._is_late:
            problem = "too many changes were not read; resume from the last token"
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_SLOW", problem)
