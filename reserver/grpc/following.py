"""A watch call: first all that exists, then each change."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from reserver.base.pacer import Pacer
from reserver.grpc.feed import Feed, FeedChange

T = TypeVar("T")

ADDED, MODIFIED, DELETED, BOOKMARK = (
    f"KIND_{each}" for each in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
)


class WatchMessage(NamedTuple, Generic[T]):
    """A message to a watcher.

    Attributes:
        kind: what happened, as the contract names it.
        item: what it happened to; None for a bookmark.
        token: from where to go on; empty until the bookmark.
    """

    kind: str
    item: T | None
    token: str = ""


async def follow(
    feed: Feed[Any], resume_token: str, unpack: Callable[[bytes], T], covers: Callable[[T], bool]
) -> AsyncGenerator[WatchMessage[T]]:
    """Yield what a watcher is told, for ever.

    Args:
        feed: of what is watched.
        resume_token: from where to go on; empty to begin.
        unpack: of what the feed has.
        covers: whether the watcher means it.

    Raises:
        Refusal: the changes since the token are not remembered, or the watch has to end.
        InvalidInput: it is no token.
    """
    await feed.catch_up()
    pacer = Pacer()

    def told(change: FeedChange) -> WatchMessage[T] | None:
        before = unpack(change.before) if change.before is not None else None
        after = unpack(change.after) if change.after is not None else None
        was = before is not None and covers(before)
        is_now = after is not None and covers(after)
        if not (was or is_now):
            return None
        kind = DELETED if not is_now else MODIFIED if was else ADDED
        return WatchMessage(kind, after if is_now else before, feed.token_of(change.number))

    with feed.watching() as watcher:
        if resume_token:
            for change in feed.since(resume_token):
                await pacer.give_way()
                if message := told(change):
                    yield message
        else:
            there, token = feed.all(), feed.token
            for packed in there:
                await pacer.give_way()
                each = unpack(packed)
                if covers(each):
                    yield WatchMessage(ADDED, each)
            yield WatchMessage(BOOKMARK, None, token)
        while True:
            change = await pacer.awaited(watcher.next())
            await pacer.give_way()
            if message := told(change):
                yield message
