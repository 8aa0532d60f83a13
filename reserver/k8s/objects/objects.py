"""Kubernetes objects as the API server and kube-scheduler send them, decoded from raw bytes.

Their lists and watch events, and the conditions (metav1.Condition) of our own are here, too.

Only the fields that decisions need are named; msgspec passes over all others without building them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from reserver.cluster import quantity
from reserver.errors import ApiError, InvalidInput, under
from reserver.k8s.objects import limits
from reserver.k8s.objects.limits import Int32, Int64
from reserver.k8s.objects.times import show_moment
from reserver.printable import printable

_MOST_DIGITS = 20
"""Of a 64-bit number."""


T = TypeVar("T")


class WireStruct(msgspec.Struct, rename="camel", frozen=True):
    """Base of all objects on the wire: camelCase, unknown fields ignored.

    A field that the API server writes even when empty has no default in entries of long lists:
    a list of a million empty entries, which no API server sends, then ends at its first.

    Attributes:
        MOST_BYTES: how long its JSON may be to be read; 0 where who sends it sees to that.
    """

    MOST_BYTES: ClassVar[int] = 0


class ObjectKind(NamedTuple):
    """A kind of objects, as references to an object name it."""

    api_version: str
    kind: str

    def reference(self) -> dict[str, str]:
        """Return the first two fields of an ObjectReference or an OwnerReference."""
        return {"apiVersion": self.api_version, "kind": self.kind}


CONFIG_MAP = ObjectKind("v1", "ConfigMap")
POD = ObjectKind("v1", "Pod")


class Metadata(WireStruct, frozen=True):
    """The part of ``metadata`` that Reserver reads of all objects."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    continue_: str = msgspec.field(default="", name="continue")

    @property
    def revision(self) -> int:
        """The resourceVersion as a number (always one since Kubernetes 1.35, KEP-5504), else 0."""
        text = self.resource_version
        return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0


class ConfigMapObject(WireStruct, frozen=True):
    """A ConfigMap on the wire."""

    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None


class LabelledMetadata(Metadata, frozen=True):
    """Metadata with labels."""

    labels: dict[str, str] | None = None


class LabelledConfigMap(ConfigMapObject, frozen=True):
    """A ConfigMap with its labels."""

    metadata: LabelledMetadata = LabelledMetadata()


class ResourceMetadata(LabelledMetadata, frozen=True):
    """The metadata of a custom resource."""

    creation_timestamp: str = ""
    generation: Int64 = 0


class CustomResource(msgspec.Struct, frozen=True):
    """A custom resource; spec and status stay raw, so a broken one does not hide it."""

    metadata: ResourceMetadata = ResourceMetadata()
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: msgspec.Raw = msgspec.Raw(b"")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type, as msgspec takes it
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], raw: bytes | msgspec.Raw) -> T:
    """Return JSON as one of the types above.

    Raises:
        InvalidInput: it is too long, not JSON, or not of that shape; the error carries the path.
    """
    most = getattr(kind, "MOST_BYTES", 0)
    if most and len(raw) > most:
        problem = f"{len(raw)} bytes are too many to be read"
        raise InvalidInput("", problem, f"keep it under {most}")
    try:
        decoded: T = _decoder(kind).decode(raw)  # type: ignore[arg-type]  # types do hash
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise from_msgspec(exc, "send the object as the Kubernetes API defines it") from exc
    return decoded


def decode_part(kind: type[T], raw: bytes | msgspec.Raw, path: str) -> T | None:
    """Decode a part of an object that was left as JSON; None if it is absent or null.

    Raises:
        InvalidInput: it is not of that shape; the error carries the path from the whole object.
    """
    if raw in {b"", b"null"}:
        return None
    with under(path):
        return decode(kind, raw)


def decode_or_none(kind: type[T], raw: msgspec.Raw) -> T | None:
    """Return JSON as one of the types above; None if it is absent, or of another shape."""
    try:
        return decode(kind, raw)
    except InvalidInput:
        return None


def from_msgspec(error: Exception, remedy: str) -> InvalidInput:
    """Return an error of msgspec as one that names the field."""
    problem, _, path = str(error).partition(" - at `$")
    return InvalidInput(path.rstrip("`").lstrip("."), quantity.shorten(problem, 200), remedy)


def encode(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    """Return a value as JSON."""
    return msgspec.json.encode(value)


class Condition(msgspec.Struct, rename="camel", frozen=True):
    """A condition (metav1.Condition)."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: Int64 = 0


class ConditionWriter:
    """The conditions that are to be said at a moment; what is as it was keeps its time."""

    def __init__(self, before: Iterable[Condition], generation: int, now: float) -> None:
        """Say them of a generation of the spec at `now` (unix seconds), after those of before."""
        self._before = {condition.type: condition for condition in before}
        self._generation = generation
        self._now = show_moment(now)

    def condition(self, kind: str, reason: str, message: str, *, holds: bool) -> Condition:
        """Return a condition."""
        status = "True" if holds else "False"
        before = self._before.get(kind)
        since = before.last_transition_time if before and before.status == status else self._now
        return Condition(kind, status, reason, printable(message), since, self._generation)


class Shown(Protocol):
    """An object of a collection."""

    @property
    def metadata(self) -> Metadata:
        """Its name and version."""


S = TypeVar("S", bound=Shown)

LARGE = limits.POD.object_bytes
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
