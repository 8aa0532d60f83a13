"""The board: all documents of the page, and which of them changed since a version. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reserver.ui.documents import Document

Changes = dict[str, dict[str, Document | None]]
"""Documents by kind and key; None for one that is gone."""

_MOST_GONE = 10_000
"""So many documents that are gone are remembered, for pages that resume."""


class Board:
    """All documents by kind and key, in the order of their last change.

    Attributes:
        version: grows with each change.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Begin empty; `on_change` is called after each change."""
        self.version = 0
        self._on_change = on_change
        self._documents: dict[tuple[str, str], tuple[int, Document | None]] = {}
        self._gone = 0
        self._oldest = 0  # Changes before this version are forgotten.

    def get(self, kind: str, key: str) -> Document | None:
        """Return a document, None if there is none."""
        return self._documents.get((kind, key), (0, None))[1]

    def by_reservers_clock(self, now: float) -> int:
        """Return a moment of this machine (unix seconds) by Reserver's clock, in milliseconds."""
        offset = self.get("status", "offset") or {"seconds": 0.0}
        return round((now + float(offset["seconds"])) * 1000)

    def put(self, kind: str, key: str, document: Document | None) -> None:
        """Set a document, or remove it: None."""
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
        """Set all documents of a kind; those that are not given are removed."""
        for known, key in [*self._documents]:
            if known == kind and key not in documents:
                self.put(kind, key, None)
        for key, document in documents.items():
            self.put(kind, key, document)

    def all(self) -> Changes:
        """Return all documents."""
        return self._changes(0, with_gone=False)

    def since(self, version: int) -> Changes | None:
        """Return what has changed after a version; None if that is not known any more."""
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
    """Return changes in parts of so many documents at most, so that a page can begin to draw."""
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
