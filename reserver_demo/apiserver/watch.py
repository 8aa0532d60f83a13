"""Watches: the present objects, then each change, with bookmarks.

apiserver/pkg/storage/cacher and endpoints/handlers/watch.go.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

from reserver_demo.apiserver.listing import ListOptions
from reserver_demo.apiserver.resource import Resource
from reserver_demo.apiserver.status import Json, StatusError, revision_in_future
from reserver_demo.apiserver.store import Change, Store, Stored, version
from reserver_demo.clock import Clock, wait_for

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the initial objects."""

BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks (`defaultBookmarkFrequency`)."""

_LAST_BOOKMARK = 2.0
"""Seconds between the last bookmark of a watch and its end."""

_DEFAULT_TIMEOUT = 1800
"""The default timeout of a watch, in seconds (`--min-request-timeout`)."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a watch: an object with ADDED, MODIFIED or DELETED, or another (`other`)."""

    kind: str
    stored: Stored | None = None
    other: Json | None = None


def see(change: Change, resource: Resource, options: ListOptions) -> Event | None:
    """Return the event of a change for a selector; None if the selector hides it.

    An object that begins to match is ADDED; one that ceases to match, or is deleted, is DELETED in
    its last matching state at the revision of the change (cacher/cache_watcher.go).
    """
    before = change.before
    matched = before is not None and options.selector.matches(before.content, resource.fields)
    if not change.deleted and options.selector.matches(change.after.content, resource.fields):
        return Event("MODIFIED" if matched else "ADDED", change.after)
    if matched and before is not None:
        return Event("DELETED", version(before.content, change.revision))
    return None


class Watch:
    """A client's watch of one resource; its errors are events, too."""

    def __init__(
        self, store: Store, resource: Resource, options: ListOptions, clock: Clock
    ) -> None:
        self._store = store
        self._collection = store.collection(resource.plural)
        self._resource = resource
        self._options = options
        self._clock = clock
        self._cursor = options.revision or 0

    async def batches(self) -> AsyncIterator[list[Event]]:
        """Yield events until the timeout of the watch, or until the server stops."""
        started = self._clock.monotonic()
        deadline = started + (self._options.timeout or _DEFAULT_TIMEOUT)
        bookmark_at = self._next_bookmark(started, deadline)
        if self._options.initial_events and self._cursor > self._store.revision:
            future = revision_in_future(self._cursor, self._store.revision)
            yield [Event("ERROR", other=future.status())]
            return
        if self._options.initial_events:
            yield self._initial()
        while not self._store.closed:
            changed = self._collection.changed
            try:
                events = self._news()
            except StatusError as error:
                yield [Event("ERROR", other=error.status())]
                return
            now = self._clock.monotonic()
            if now >= bookmark_at:
                events.append(self._bookmark())
                bookmark_at = self._next_bookmark(now, deadline)
            if events:
                yield events
            elif now < deadline:
                await wait_for(changed, self._clock, min(bookmark_at, deadline) - now)
            if now >= deadline:
                return

    def _initial(self) -> list[Event]:
        self._cursor = self._store.revision
        matches, readers = self._options.selector.matches, self._resource.fields
        events = [
            Event("ADDED", stored)
            for stored in self._collection.items()
            if matches(stored.content, readers)
        ]
        if self._options.bookmarks:
            events.append(self._bookmark({INITIAL_EVENTS_END: "true"}))
        return events

    def _news(self) -> list[Event]:
        changes = self._collection.changes_after(self._cursor)
        # Up to the store's revision nothing else has changed, so a quiet watch does not expire.
        self._cursor = max(self._cursor, self._store.revision)
        seen = (see(change, self._resource, self._options) for change in changes)
        return [event for event in seen if event is not None]

    def _next_bookmark(self, now: float, deadline: float) -> float:
        last, regular = deadline - _LAST_BOOKMARK, now + BOOKMARK_INTERVAL
        if not self._options.bookmarks:
            return math.inf
        return last if now < last < regular else regular

    def _bookmark(self, annotations: Json | None = None) -> Event:
        metadata: Json = {"resourceVersion": str(self._cursor), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        head = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        return Event("BOOKMARK", other={**head, "metadata": metadata})
