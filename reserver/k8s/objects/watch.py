"""Lists and watch events of the Kubernetes API."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects.limits import POD, Int32
from reserver.k8s.objects.objects import Metadata, decode


class Shown(Protocol):
    """An object of a collection."""

    @property
    def metadata(self) -> Metadata:
        """Its name and version."""


S = TypeVar("S", bound=Shown)

LARGE = POD.object_bytes
"""So long a line of a watch may be for its object to be read with it, in bytes."""


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list; items stay raw, so that a broken one does not affect others."""

    metadata: Metadata = Metadata()
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class ReadEvent(msgspec.Struct, Generic[S], frozen=True):
    """The same, with an object that has been read."""

    type: str
    object: S


class PartialObject(msgspec.Struct, frozen=True):
    """Any object, as far as its metadata."""

    metadata: Metadata = Metadata()


class Status(msgspec.Struct, frozen=True):
    """The API server's Status object."""

    code: Int32 = 0
    reason: str = ""
    message: str = ""


def metadata_of(item: Shown | msgspec.Raw) -> Metadata:
    """Return the metadata of an object, read or not.

    Raises:
        InvalidInput: not even that can be read.
    """
    return (decode(PartialObject, item) if isinstance(item, msgspec.Raw) else item).metadata


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


def read_event_of(kind: type[ReadEvent[S]], line: bytes) -> ReadEvent[S] | WatchEvent:
    """Do the same, and read the object as well; if it cannot be read, it stays JSON.

    To pass over an object, to see where it ends, takes half as long as to read it.
    """
    if len(line) > LARGE:
        return read_event(line)  # Its kind may have a bound.
    try:
        event = decode(kind, line)
    except InvalidInput:
        return read_event(line)
    return read_event(line) if event.type == "ERROR" else event
