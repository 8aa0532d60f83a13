"""The view that a reflector keeps up to date."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import msgspec

from reserver.base.pacer import Steps
from reserver.k8s.objects.objects import Metadata
from reserver.k8s.objects.watch import ReadEvent

Item = Any
"""An object of a watch, as `WatchView.events` has it, or as JSON if it cannot be read."""


class WatchView(Protocol):
    """The view that a reflector keeps up to date."""

    unreadable: int
    """How many objects were skipped because they could not be read."""

    @property
    def events(self) -> type[ReadEvent[Any]]:
        """What a watch shows."""

    def list_began(self, seen: int = 0) -> None:
        """Begin a list; the one before may have been broken off.

        Args:
            seen: everything up to this resourceVersion was shown; 0 for nothing.
        """

    def listed(self, item: msgspec.Raw) -> Steps:
        """Take an object that a page of a list shows; raises WentBack."""

    def list_ended(self, revision: int) -> Steps:
        """Drop what no page has shown; the list had this resourceVersion, 0 for none."""

    def changed(self, item: Item) -> Generator[None, None, Metadata]:
        """Take an object that was added or modified; return its metadata."""

    def deleted(self, item: Item) -> Generator[None, None, Metadata]:
        """Drop an object, whose last state is `item`; return its metadata."""
