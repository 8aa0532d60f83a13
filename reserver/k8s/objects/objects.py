"""Kubernetes objects as the API server and kube-scheduler send them, decoded from raw bytes.

Only the fields that decisions need are named; msgspec passes over all others without building them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.limits import Int64

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
