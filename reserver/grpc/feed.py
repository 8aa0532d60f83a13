"""The feed of a watch: first all present reservations, then each change, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

import grpc

from reserver.base.pacer import Pacer, Steps
from reserver.base.quarantine import quarantined
from reserver.errors import InvalidInput
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.selection import ReservationSelector
from reserver.grpc.status_errors import CallError
from reserver.grpc.watcher import REMEMBERED_BYTES, FeedChange, Watcher
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.v1 import reservation_pb2 as pb

REMEMBERED = 20_000
"""Most changes that a watch may have missed when it resumes."""


class _Room:
    """The short nodes, computed once a turn: the ledger changes only between two turns."""

    def __init__(self, catalogue: Catalogue, pacer: Pacer) -> None:
        self._catalogue, self._pacer = catalogue, pacer
        self._seen: tuple[int, ShortNodes] | None = None

    def now(self) -> ShortNodes:
        """Return the present short nodes."""
        if self._seen is None or self._seen[0] != self._pacer.turns:
            self._seen = self._pacer.turns, self._catalogue.short_nodes()
        return self._seen[1]


class ReservationFeed(Listener):
    """The changes of the reservations of a catalogue, in order.

    Resume tokens are valid in this process, as far back as it keeps the changes.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._epoch = uuid4().hex[:12]
        self._changed: dict[Ref, None] = {}
        self._something_touched = asyncio.Event()
        self._known: dict[Ref, dict[str, bytes]] = {}
        self._changes: deque[FeedChange] = deque()
        self._bytes = 0
        self._number = 0
        self._watchers: set[Watcher] = set()
        self._catching_up = asyncio.Lock()

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue a ref whose reservations may have changed."""
        self._changed[ref.whole] = None
        self._something_touched.set()

    async def run(self) -> None:
        """Process queued refs until cancelled; `catch_up` does so at once for a caller."""
        while True:
            await self._something_touched.wait()
            pacer = Pacer()
            with quarantined("pass", "feed"):
                await self.catch_up(pacer)
            await pacer.rest()

    async def catch_up(self, pacer: Pacer | None = None) -> None:
        """Process all queued refs."""
        async with self._catching_up:
            pacer = pacer or Pacer()
            room = _Room(self._catalogue, pacer)
            while self._changed:
                key = next(iter(self._changed))
                del self._changed[key]
                with quarantined("feed", key):
                    await pacer.run(self._compare(key, await self._look(key, room, pacer)))
                await pacer.give_way()
            self._something_touched.clear()

    def named(self) -> list[tuple[str, bytes]]:
        """Return the ids and serialized messages of all reservations, as last processed."""
        return [each for entries in self._known.values() for each in entries.items()]

    @property
    def token(self) -> str:
        """The token to resume from, before the next change."""
        return self.token_of(self._number)

    def token_of(self, number: int) -> str:
        """Return the token to resume from after a change."""
        return f"{self._epoch}.{number}"

    def since(self, token: str) -> list[FeedChange]:
        """Return the changes after a token.

        Raises:
            CallError: the changes are not kept any more.
            InvalidInput: the token is malformed.
        """
        epoch, dot, number = token.partition(".")
        if not (dot and number.isascii() and number.isdecimal() and len(number) < 20):  # noqa: PLR2004
            problem = "is not a token of this server"
            raise InvalidInput("resumeToken", problem, "pass a token from Watch unchanged")
        oldest = self._changes[0].number if self._changes else self._number + 1
        if epoch != self._epoch or not oldest - 1 <= int(number) <= self._number:
            problem = "the server no longer has the changes since that token; watch without one"
            raise CallError(grpc.StatusCode.OUT_OF_RANGE, "TOKEN_TOO_OLD", problem)
        missed = self._number - int(number)
        return list(self._changes)[len(self._changes) - missed :]

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Queue changes for a new watcher until the block ends."""
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def end(self) -> None:
        """End all watches."""
        for watcher in self._watchers:
            watcher.end()

    async def _look(self, ref: Ref, room: _Room, pacer: Pacer) -> dict[str, bytes]:
        """Return the present serialized messages of a ref, by id."""
        after: dict[str, bytes] = {}
        for reservation, text in self._catalogue.written(ref):
            await pacer.give_way()
            shown = self._catalogue.show_written(reservation, text, room.now())
            after[shown.id] = shown.SerializeToString(deterministic=True)
        for shown in self._catalogue.broken(ref):
            after[shown.id] = shown.SerializeToString(deterministic=True)
        return after

    def _compare(self, key: Ref, after: Mapping[str, bytes]) -> Steps:
        """Publish the change of each entry of a ref, one per step."""
        known = self._known.setdefault(key, {})
        for name in known.keys() | after.keys():
            before, now = known.get(name), after.get(name)
            if before != now:
                if now is None:
                    del known[name]
                else:
                    known[name] = now
                self._number += 1
                size = len(before or b"") + len(now or b"")
                self._publish(FeedChange(self._number, before, now, size))
            yield
        if not known:
            del self._known[key]

    def _publish(self, change: FeedChange) -> None:
        self._changes.append(change)
        self._bytes += change.size
        while len(self._changes) > REMEMBERED or self._bytes > REMEMBERED_BYTES:
            self._bytes -= self._changes.popleft().size
        for watcher in self._watchers:
            watcher.add(change)


_WATCH = pb.WatchResponse


async def follow(
    feed: ReservationFeed, resume_token: str, selector: ReservationSelector
) -> AsyncGenerator[pb.WatchResponse]:
    """Yield the messages of a watch, for ever; an empty token begins a new watch.

    Raises:
        CallError: the changes since the token are not kept any more, or the watch was ended.
        InvalidInput: the token is malformed.
    """
    await feed.catch_up()
    pacer = Pacer()

    with feed.watching() as watcher:
        if resume_token:
            for change in watcher.begin(feed.since(resume_token)):
                await pacer.give_way()
                if message := _message(change, feed, selector):
                    yield message
        else:
            token = feed.token
            for _, packed in watcher.begin(feed.named()):
                await pacer.give_way()
                each = pb.Reservation.FromString(packed)
                if selector.covers(each):
                    yield _WATCH(kind=_WATCH.KIND_ADDED, reservation=each)
            yield _WATCH(kind=_WATCH.KIND_BOOKMARK, resume_token=token)
        while True:
            change = await pacer.awaited(watcher.next())
            await pacer.give_way()
            if message := _message(change, feed, selector):
                yield message


def _unpacked(packed: bytes | None) -> pb.Reservation | None:
    return None if packed is None else pb.Reservation.FromString(packed)


def _message(
    change: FeedChange, feed: ReservationFeed, selector: ReservationSelector
) -> pb.WatchResponse | None:
    """Return the message of a change; None if the watcher does not select it."""
    before, after = _unpacked(change.before), _unpacked(change.after)
    was = before is not None and selector.covers(before)
    is_now = after is not None and selector.covers(after)
    if not (was or is_now):
        return None
    kind = _WATCH.KIND_DELETED
    if is_now:
        kind = _WATCH.KIND_MODIFIED if was else _WATCH.KIND_ADDED
    token = feed.token_of(change.number)
    return _WATCH(kind=kind, reservation=after if is_now else before, resume_token=token)
