"""The changes of a collection between two resourceVersions.

A watch tells only by a bookmark that it has told all, and bookmarks come once a minute, and two
seconds before the watch's end (`nextBookmarkTime` in apiserver's cacher/cache_watcher.go): a watch
that is to end soon says soon how far it has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Protocol

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.watch import ObjectList, PartialObject, WatchEvent, read_event

_ROUNDS = 20
_TIMEOUT_S = 3


class WatchedCollection(Protocol):
    """A watched collection of objects, or a part of one."""

    @property
    def path(self) -> str:
        """Its path."""

    @property
    def selector(self) -> Mapping[str, str]:
        """Parameters of lists and watches."""


async def latest(client: ApiClient, collection: WatchedCollection) -> int:
    """Return the resourceVersion that a list would have now: no earlier change is newer.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: it answered with something else.
    """
    params = {**collection.selector, "limit": "1"}
    metadata = decode(ObjectList, await client.get(collection.path, params)).metadata
    if not metadata.revision:
        problem = f"{metadata.resource_version!r} is no resourceVersion"
        raise InvalidInput(
            "metadata.resourceVersion",
            problem,
            "a list of the API server has one; check for a proxy in between",
        )
    return metadata.revision


async def changes(
    client: ApiClient, collection: WatchedCollection, since: int, until: int
) -> AsyncIterator[tuple[int, WatchEvent]]:
    """Yield each change after a resourceVersion up to another, and the resourceVersion it made.

    Raises:
        ApiError: the API server refused, or did not answer; 410 if it does not remember so far.
        InvalidInput: it answered with something else.
    """
    reached = since
    for _ in range(_ROUNDS):
        params = {
            **collection.selector,
            "resourceVersion": str(reached),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_TIMEOUT_S),
        }
        async with aclosing(client.watch(collection.path, params, _TIMEOUT_S + 5)) as lines:
            async for line in lines:
                if line:
                    event = read_event(line)
                    reached = decode(PartialObject, event.object).metadata.revision
                    if event.type != "BOOKMARK" and reached <= until:
                        yield reached, event
                if reached >= until:
                    return
                await asyncio.sleep(0)
    raise ApiError(0, "Timeout", "the API server does not come to an end of it")
