"""The board: all documents of the page, with the version of their last change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reserver.ui.documents import Document

Changes = dict[str, dict[str, Document | None]]
"""Documents by kind and key; None for a removed document."""

_MOST_GONE = 10_000
"""Most removed documents that are kept for resuming pages."""


class Board:
    """All documents by kind and key, in the order of their last change.

    Attributes:
        version: the number of changes so far.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Create an empty board; `on_change` is called after each change."""
        self.version = 0
        self._on_change = on_change
        self._documents: dict[tuple[str, str], tuple[int, Document | None]] = {}
        self._gone = 0
        self._oldest = 0  # Removals up to this version are not kept any more.

    def get(self, kind: str, key: str) -> Document | None:
        """Return a document; None if absent."""
        return self._documents.get((kind, key), (0, None))[1]

    def by_reservers_clock(self, now: float) -> int:
        """Convert a time of this machine (unix seconds) to Reserver's clock (unix milliseconds)."""
        offset = self.get("status", "offset") or {"seconds": 0.0}
        return round((now + float(offset["seconds"])) * 1000)

    def put(self, kind: str, key: str, document: Document | None) -> None:
        """Set a document, or remove it with None."""
        before = self.get(kind, key)
        if before == document:
            return
        was_known = self._documents.pop((kind, key), None) is not None
        self.version += 1
        self._documents[kind, key] = (self.version, document)
        self._gone += (document is None) - (was_known and before is None)
        if self._gone > _MOST_GONE:
            self._forget()
        self._on_change()

    def replace(self, kind: str, documents: Mapping[str, Document]) -> None:
        """Set all documents of a kind, and remove all others of the kind."""
        for known, key in [*self._documents]:
            if known == kind and key not in documents:
                self.put(kind, key, None)
        for key, document in documents.items():
            self.put(kind, key, document)

    def all(self) -> Changes:
        """Return all documents."""
        return self._changes(0, with_gone=False)

    def since(self, version: int) -> Changes | None:
        """Return the changes after a version; None if they are not kept any more."""
        if not self._oldest <= version <= self.version:
            return None
        return self._changes(version, with_gone=True)

    def _changes(self, version: int, *, with_gone: bool) -> Changes:
        found: Changes = {}
        for (kind, key), (at, document) in reversed(self._documents.items()):
            if at <= version:
                break
            if document is not None or with_gone:
                found.setdefault(kind, {})[key] = document
        return found

    def _forget(self) -> None:
        gone = [known for known, (_, document) in self._documents.items() if document is None]
        for known in gone[: len(gone) // 2]:
            self._oldest, _ = self._documents.pop(known)
            self._gone -= 1


def chunks(changes: Changes, most: int) -> list[dict[str, Any]]:
    """Return changes in parts of at most `most` documents, so that a page can start to draw."""
    parts: list[dict[str, Any]] = []
    size = most
    for kind, documents in changes.items():
        for key, document in documents.items():
            if size == most:
                parts.append({})
                size = 0
            parts[-1].setdefault(kind, {})[key] = document
            size += 1
    return parts or [{}]
