"""Lists and watch events of the Kubernetes API."""

from __future__ import annotations

import msgspec

from reserver.errors import ApiError
from reserver.wire.k8s.objects import Metadata, decode
from reserver.wire.limits import Int32


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list; items stay raw, so that a broken one does not affect others."""

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

    code: Int32 = 0
    reason: str = ""
    message: str = ""


def read_event(line: bytes) -> WatchEvent:
    """Return one line of a watch.

    Raises:
        ApiError: the API server says that it cannot go on; 410 if it does not remember so far back.
        InvalidInput: it is no event.
    """
    event = decode(WatchEvent, line)
    if event.type == "ERROR":
        status = decode(Status, event.object)
        raise ApiError(status.code, status.reason, status.message)
    return event
