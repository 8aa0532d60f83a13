"""A collection of objects: its pages, its changes between two moments, and its CRD or namespace.

Only a bookmark shows that a watch is complete. Bookmarks come once a minute, and two seconds before
the watch's end (`nextBookmarkTime` in apiserver's cacher/cache_watcher.go): so a watch with a short
timeout soon reports its resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Protocol

import msgspec

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import (
    Metadata,
    ObjectList,
    PartialObject,
    WatchEvent,
    decode,
    read_event,
)

_ROUNDS = 20
_TIMEOUT_S = 3


class WatchedCollection(Protocol):
    """A watched collection of objects, or a part of one."""

    @property
    def path(self) -> str:
        """Path of the collection."""

    @property
    def selector(self) -> Mapping[str, str]:
        """Query parameters of lists and watches."""


async def latest(client: ApiClient, collection: WatchedCollection) -> int:
    """Return the resourceVersion of a list made now: no earlier change is newer.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: the answer was malformed.
    """
    params = {**collection.selector, "limit": "1"}
    metadata = decode(ObjectList, await client.get(collection.path, params)).metadata
    if not metadata.revision:
        problem = f"{metadata.resource_version!r} is not a resourceVersion"
        raise InvalidInput(
            "metadata.resourceVersion",
            problem,
            "a list of the API server has one; check for a proxy in between",
        )
    return metadata.revision


async def changes(
    client: ApiClient, collection: WatchedCollection, since: int, until: int
) -> AsyncIterator[tuple[int, WatchEvent]]:
    """Yield each change after `since` up to `until`, with its resourceVersion.

    Raises:
        ApiError: the API server refused, or did not answer; 410 if `since` is too old for it.
        InvalidInput: the answer was malformed.
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


PAGE = 250
"""Most objects of a page: bounds the time for which its decoding delays calls."""

PAGE_BYTES = 32 * 2**20
"""Most bytes of a page. One object has at most three megabytes, but a tenant can write many such
pods; two pages are in memory at a time."""

_LESS = 8
"""A page that is too long is requested again with the number of objects divided by this."""


class Pages:
    """The pages of one collection."""

    def __init__(self, client: ApiClient, path: str) -> None:
        """Begin with the largest pages, as no object is known to be large."""
        self._client = client
        self._path = path
        self._limit = PAGE

    async def page(self, params: Mapping[str, str]) -> ObjectList:
        """Return a page of a list, with fewer objects after pages that were too long.

        Raises:
            ApiError: the API server refused, or did not answer.
            InvalidInput: the answer was malformed.
        """
        while True:
            asked = {**params, "limit": str(self._limit)}
            try:
                raw = await self._client.get_bounded(self._path, PAGE_BYTES, asked)
            except ApiError as exc:
                if exc.reason != "TooLarge" or self._limit == 1:
                    raise
                self._limit = max(1, self._limit // _LESS)
                continue
            if len(raw) < PAGE_BYTES // 2:
                self._limit = min(PAGE, 2 * self._limit)
            return decode(ObjectList, raw)


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"


class _Deleted(Metadata, frozen=True):
    deletion_timestamp: str | None = None


class _Item(msgspec.Struct, frozen=True):
    metadata: _Deleted = _Deleted()


class _List(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    items: list[_Item] = []


class Enclosing:
    """A CRD or a namespace.

    Deleting it deletes its objects one by one, although no client released them: such a deletion
    counts only once the CRD or namespace exists again without them (docs/adr/0071).
    """

    def __init__(
        self, client: ApiClient, path: str, name: str, *, may_be_missing: bool = False
    ) -> None:
        """Set its path and name; with `may_be_missing` it may not exist until it was seen once."""
        self._may_be_missing = may_be_missing
        self._client = client
        self._path = path
        self._name = name
        self._kept_up_to = 0

    async def require_kept(self, revision: int) -> None:
        """Return if it was not being deleted at `revision`, so that other clients deleted objects.

        Raises:
            ApiError: it is being deleted, or is gone; or the API server did not answer.
        """
        if revision <= self._kept_up_to:
            return  # One request for each burst of deletions.
        params = {"fieldSelector": f"metadata.name={self._name}"}
        try:
            found = decode(_List, await self._client.get(self._path, params))
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return  # An API server without CRDs, as in the demo: none can be deleted.
        if not found.items and self._may_be_missing and not self._kept_up_to:
            return
        if not found.items or found.items[0].metadata.deletion_timestamp:
            state = "is being deleted" if found.items else "does not exist"
            problem = f"{self._name} {state}; make it again: docs/backup-and-restore.md"
            raise ApiError(HTTPStatus.CONFLICT, "Terminating", problem)
        self._kept_up_to = found.metadata.revision
