"""A watch call: first all reservations that exist, then each change."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from reserver.base.pacer import Pacer
from reserver.grpc.feed import FeedChange, ReservationFeed
from reserver.grpc.selection import ReservationSelector
from reserver.v1 import reservation_pb2 as pb

_WATCH = pb.WatchResponse


async def follow(
    feed: ReservationFeed, resume_token: str, selector: ReservationSelector
) -> AsyncGenerator[pb.WatchResponse]:
    """Yield the messages to a watcher, for ever; an empty token begins a watch.

    Raises:
        CallError: the changes since the token are not remembered, or the watch has to end.
        InvalidInput: it is no token.
    """
    await feed.catch_up()
    pacer = Pacer()

    with feed.watching() as watcher:
        if resume_token:
            for change in feed.since(resume_token):
                await pacer.give_way()
                if message := _told(change, feed, selector):
                    yield message
        else:
            there, token = feed.all(), feed.token
            for packed in there:
                await pacer.give_way()
                each = pb.Reservation.FromString(packed)
                if selector.covers(each):
                    yield _WATCH(kind=_WATCH.KIND_ADDED, reservation=each)
            yield _WATCH(kind=_WATCH.KIND_BOOKMARK, resume_token=token)
        while True:
            change = await pacer.awaited(watcher.next())
            await pacer.give_way()
            if message := _told(change, feed, selector):
                yield message


def _unpacked(packed: bytes | None) -> pb.Reservation | None:
    return None if packed is None else pb.Reservation.FromString(packed)


def _told(
    change: FeedChange, feed: ReservationFeed, selector: ReservationSelector
) -> pb.WatchResponse | None:
    """Return the message about a change; None if the watcher does not mean it."""
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
