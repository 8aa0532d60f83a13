"""Kubernetes objects as the API server and kube-scheduler send them, decoded from raw bytes.

Lists, watch events, and the conditions (metav1.Condition) that Reserver writes are here as well.

Structs name only the fields that decisions need; msgspec skips others without building them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import force_setattr

from reserver.cluster import quantity
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects import limits
from reserver.k8s.objects.kept_metadata import few_labels, own_annotations
from reserver.k8s.objects.limits import Int32, Int64
from reserver.k8s.objects.times import show_moment
from reserver.printable import printable

_MOST_DIGITS = 20
"""Digits of the largest 64-bit number."""


T = TypeVar("T")


class WireStruct(msgspec.Struct, rename="camel", frozen=True):
    """Base of all objects on the wire: camelCase, unknown fields ignored.

    In entries of long lists, a field that the API server writes even when empty has no default: a
    list of a million empty entries, which no API server sends, then fails at its first entry.

    Attributes:
        MOST_BYTES: longest JSON that is read, in bytes; 0 if the sender bounds its length.
    """

    MOST_BYTES: ClassVar[int] = 0


class StrictStruct(
    msgspec.Struct, rename="camel", frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Base of the specs of Reserver's own objects: unknown fields are refused."""


class ObjectKind(NamedTuple):
    """A kind of object, as references to an object name it."""

    api_version: str
    kind: str

    def reference(self) -> dict[str, str]:
        """Return the first two fields of an ObjectReference or an OwnerReference."""
        return {"apiVersion": self.api_version, "kind": self.kind}


CONFIG_MAP = ObjectKind("v1", "ConfigMap")
POD = ObjectKind("v1", "Pod")


class Metadata(WireStruct, frozen=True):
    """The part of ``metadata`` that Reserver reads of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    continue_: str = msgspec.field(default="", name="continue")

    @property
    def revision(self) -> int:
        """The resourceVersion as a number; 0 if it is none (never since 1.35, KEP-5504)."""
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
    """The metadata of a custom resource, which is kept: without what nobody reads."""

    creation_timestamp: str = ""
    generation: Int64 = 0

    def __post_init__(self) -> None:
        """Forget other annotations than Reserver's, and labels beyond a bound."""
        if self.labels:
            force_setattr(self, "labels", few_labels(self.labels))
        if self.annotations:
            force_setattr(self, "annotations", own_annotations(self.annotations))


class CustomResource(msgspec.Struct, frozen=True):
    """A custom resource; spec and status stay raw, so that it is read even if one is invalid."""

    metadata: ResourceMetadata = ResourceMetadata()
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: msgspec.Raw = msgspec.Raw(b"")


@cache
def _decoder(kind: Any) -> tuple[msgspec.json.Decoder[Any], int]:  # noqa: ANN401 - a type
    """Return the decoder of a type, and the most bytes that it reads; 0 for any number."""
    return msgspec.json.Decoder(kind), getattr(kind, "MOST_BYTES", 0)


def decode(kind: type[T], raw: bytes | msgspec.Raw) -> T:
    """Return JSON decoded as a struct.

    Raises:
        InvalidInput: the JSON is too long, malformed, or of another shape; with the path.
    """
    decoder, most = _decoder(kind)  # type: ignore[arg-type]  # types do hash
    if most and len(raw) > most:
        problem = f"{len(raw)} bytes are too many to be read"
        raise InvalidInput("", problem, f"keep it under {most}")
    try:
        decoded: T = decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise from_msgspec(exc, "send the object as the Kubernetes API defines it") from exc
    return decoded


def decode_part(kind: type[T], raw: bytes | msgspec.Raw, path: str) -> T | None:
    """Decode a part of an object that was left as JSON; None if it is absent or null.

    Raises:
        InvalidInput: it has another shape; the error carries the path from the whole object.
    """
    if raw in {b"", b"null"}:
        return None
    try:
        return decode(kind, raw)
    except InvalidInput as exc:
        raise exc.under(path) from exc


def decode_or_none(kind: type[T], raw: msgspec.Raw) -> T | None:
    """Return JSON decoded as a struct; None if it is absent, or of another shape."""
    try:
        return decode(kind, raw)
    except InvalidInput:
        return None


def from_msgspec(error: Exception, remedy: str) -> InvalidInput:
    """Return an error of msgspec as InvalidInput with the path of the field."""
    problem, _, path = str(error).partition(" - at `$")
    return InvalidInput(path.rstrip("`").lstrip("."), quantity.shorten(problem, 200), remedy)


def encode(value: Any) -> bytes:  # noqa: ANN401 - any value that JSON can hold
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
    """Makes the conditions of an object; an unchanged status keeps its transition time."""

    def __init__(self, before: Iterable[Condition], generation: int, now: float) -> None:
        """Set earlier conditions, the generation of the spec, and `now` (unix seconds)."""
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
        """Name and version of the object."""


S = TypeVar("S", bound=Shown)

LARGE = limits.POD.object_bytes
"""Longest line of a watch that is decoded together with its object, in bytes."""


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list; items stay raw, so that an invalid item does not affect others."""

    metadata: Metadata = Metadata()
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class ReadEvent(msgspec.Struct, Generic[S], frozen=True):
    """A line of a watch with a decoded object."""

    type: str
    object: S


class PartialObject(msgspec.Struct, frozen=True):
    """Any object, reduced to its metadata."""

    metadata: Metadata = Metadata()


class Status(msgspec.Struct, frozen=True):
    """The API server's Status object."""

    code: Int32 = 0
    reason: str = ""
    message: str = ""


def metadata_of(item: Shown | msgspec.Raw) -> Metadata:
    """Return the metadata of an object, decoded or raw.

    Raises:
        InvalidInput: the metadata is malformed.
    """
    return (decode(PartialObject, item) if isinstance(item, msgspec.Raw) else item).metadata


def read_event(line: bytes) -> WatchEvent:
    """Return one line of a watch as an event.

    Raises:
        ApiError: the API server ends the watch; 410 if the resourceVersion is too old.
        InvalidInput: the line is not an event.
    """
    event = decode(WatchEvent, line)
    if event.type == "ERROR":
        status = decode(Status, event.object)
        raise ApiError(status.code, status.reason, status.message)
    return event


def read_event_of(kind: type[ReadEvent[S]], line: bytes) -> ReadEvent[S] | WatchEvent:
    """Return one line of a watch with its object decoded; an invalid object stays JSON.

    Skipping an object in order to find its end takes half as long as decoding it.
    """
    if len(line) > LARGE:
        return read_event(line)  # The kind may have a bound on its length.
    try:
        event = decode(kind, line)
    except InvalidInput:
        return read_event(line)
    return read_event(line) if event.type == "ERROR" else event
