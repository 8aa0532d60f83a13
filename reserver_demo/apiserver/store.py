"""The store: objects, a counter of revisions, and a bounded history of changes.

As in etcd behind the watch cache, every write of any resource gets the next revision, and a watch
can start at any revision whose successors are still in the history.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from reserver_demo.apiserver.status import Json, expired


class Key(NamedTuple):
    """The key of an object; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of one object.

    Attributes:
        key: the key of the object.
        revision: the resourceVersion.
        content: the object without kind and apiVersion; must not be changed.
        encoded: `content` as JSON.
    """

    key: Key
    revision: int
    content: Json
    encoded: bytes

    def copy(self) -> Json:
        """Return a copy of the content, which may be changed."""
        fresh: Json = msgspec.json.decode(self.encoded)
        return fresh


@dataclass(frozen=True, slots=True)
class Change:
    """A write, as shown to watches.

    Attributes:
        revision: its revision.
        before: the object before the write; None for a creation.
        after: the object after the write; for a deletion the last state, with this revision.
        deleted: whether the write removed the object.
    """

    revision: int
    before: Stored | None
    after: Stored
    deleted: bool


class Collection:
    """All objects of one resource, and their latest changes."""

    def __init__(self, history_limit: int, revision: int) -> None:
        self._items: dict[Key, Stored] = {}
        self._history: list[Change] = []
        self._limit = history_limit
        self._changed = asyncio.Event()
        self.start = revision
        """The oldest revision from which a watch can be served."""

    def get(self, key: Key) -> Stored | None:
        """Return a present object; None if absent."""
        return self._items.get(key)

    def items(self) -> list[Stored]:
        """Return all present objects, in the order of their keys."""
        return [self._items[key] for key in sorted(self._items)]

    def items_at(self, revision: int) -> list[Stored]:
        """Return all objects at a revision, in the order of their keys.

        Raises:
            StatusError: 410 if the history does not reach back so far.
        """
        items = dict(self._items)
        for change in reversed(self.changes_after(revision)):
            if change.before is None:
                del items[change.after.key]
            else:
                items[change.after.key] = change.before
        return [items[key] for key in sorted(items)]

    def changes_after(self, revision: int) -> list[Change]:
        """Return the changes since a revision.

        Raises:
            StatusError: 410 if the history does not reach back so far.
        """
        if revision < self.start:
            raise expired(f"too old resource version: {revision} ({self.start})")
        return self._history[bisect_right(self._history, revision, key=lambda c: c.revision) :]

    @property
    def changed(self) -> asyncio.Event:
        """The event that the next change, or `wake`, sets."""
        return self._changed

    def wake(self) -> None:
        """Set the event `changed`, and replace it by a new one."""
        self._changed.set()
        self._changed = asyncio.Event()

    def apply(self, change: Change) -> None:
        """Record a change, drop changes beyond the limit, and wake the watches."""
        if change.deleted:
            del self._items[change.after.key]
        else:
            self._items[change.after.key] = change.after
        self._history.append(change)
        # In large steps: deleting one item at the front of a list costs as much as many.
        if len(self._history) >= 2 * self._limit:
            dropped = len(self._history) - self._limit
            self.start = self._history[dropped - 1].revision
            del self._history[:dropped]
        self.wake()


class Store:
    """All collections, and the common counter of revisions."""

    def __init__(self, history_limit: int) -> None:
        self._revision = 1
        self._limit = history_limit
        self._collections: dict[str, Collection] = {}
        self._closed = False
        self.written = asyncio.Event()
        """Set by every write; the controllers clear it."""

    @property
    def closed(self) -> bool:
        """Whether the store is closed, so that watches end."""
        return self._closed

    def close(self) -> None:
        """End all watches."""
        self._closed = True
        for collection in self._collections.values():
            collection.wake()

    @property
    def revision(self) -> int:
        """The revision of the latest write."""
        return self._revision

    def collection(self, plural: str) -> Collection:
        """Return the collection of a resource; created if absent."""
        if plural not in self._collections:
            self._collections[plural] = Collection(self._limit, self._revision)
        return self._collections[plural]

    def put(self, plural: str, content: Json) -> Stored:
        """Write an object under the next revision."""
        return self._write(plural, content, deleted=False)

    def remove(self, plural: str, content: Json) -> Stored:
        """Remove an object; `content` is its last state."""
        return self._write(plural, content, deleted=True)

    def _write(self, plural: str, content: Json, *, deleted: bool) -> Stored:
        self._revision += 1
        stored = version(content, self._revision)
        collection = self.collection(plural)
        before = collection.get(stored.key)
        collection.apply(Change(self._revision, before, stored, deleted))
        self.written.set()
        return stored


def version(content: Json, revision: int) -> Stored:
    """Return an object at a revision, without kind and apiVersion."""
    metadata = content["metadata"] | {"resourceVersion": str(revision)}
    bare: Json = {"metadata": metadata}
    bare |= {k: v for k, v in content.items() if k not in {"kind", "apiVersion", "metadata"}}
    key = Key(metadata.get("namespace", ""), metadata["name"])
    return Stored(key, revision, bare, msgspec.json.encode(bare))
