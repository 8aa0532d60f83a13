"""Lists and watch events of the Kubernetes API."""

from __future__ import annotations

import msgspec

from reserver.wire.objects import Metadata


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list; items stay raw, so that a broken one costs no other."""

    metadata: Metadata = Metadata()
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class PartialObject(msgspec.Struct, frozen=True):
    """Any object, as far as its metadata."""

    metadata: Metadata = Metadata()


class Status(msgspec.Struct, frozen=True):
    """The API server's Status object."""

    code: int = 0
    reason: str = ""
    message: str = ""
