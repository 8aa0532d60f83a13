"""Decodes the objects that kubectl sends in Kubernetes' protobuf encoding.

The fields and their numbers are from generated.proto in k8s.io/api/core/v1 and scheduling/v1 and in
k8s.io/apimachinery/pkg/apis/meta/v1. Fields that kubectl never sets are left out.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from reserver_demo.apiserver.status import Json, bad_request

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_PACKAGE = "kubernetes"
_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
}
_MESSAGES = {
    "Text": "string key 1, string value 2",
    "Bytes": "string key 1, bytes value 2",
    "TypeMeta": "string apiVersion 1, string kind 2",
    "Unknown": "TypeMeta typeMeta 1, bytes raw 2",
    "ObjectMeta": "string name 1, string generateName 2, string namespace 3, "
    "Text* labels 11, Text* annotations 12, string* finalizers 14",
    "ConfigMap": "ObjectMeta metadata 1, Text* data 2, Bytes* binaryData 3, bool immutable 4",
    "Namespace": "ObjectMeta metadata 1",
    "PriorityClass": "ObjectMeta metadata 1, int32 value 2, bool globalDefault 3, "
    "string description 4, string preemptionPolicy 5",
}
_KINDS = frozenset({"ConfigMap", "Namespace", "PriorityClass"})


def decode(body: bytes) -> Json:
    """Return the object of a body, in its JSON form.

    Raises:
        StatusError: 400.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message")
    try:
        unknown = _parsed("Unknown", body[len(_MAGIC) :])
        kind = unknown.typeMeta.kind
        if kind not in _KINDS:
            raise bad_request(f"{kind} is read as JSON or YAML only here, not as protobuf")
        value: Json = json_format.MessageToDict(_parsed(kind, unknown.raw))
    except DecodeError as error:
        raise bad_request(f"unable to decode protobuf: {error}") from error
    for part, field in ((value, "data"), (value, "binaryData")):
        if field in part:
            part[field] = _map(part[field])
    metadata = value.setdefault("metadata", {})
    for field in ("labels", "annotations"):
        if field in metadata:
            metadata[field] = _map(metadata[field])
    return {"apiVersion": unknown.typeMeta.apiVersion, "kind": kind, **value}


def _map(entries: list[dict[str, str]]) -> dict[str, str]:
    """Return the map of a list of entries, its form on the wire."""
    return {entry.get("key", ""): entry.get("value", "") for entry in entries}


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="kubernetes.proto", package=_PACKAGE)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for each in fields.split(", "):
            kind, field, number = each.split()
            repeated = kind.endswith("*")
            kind = kind.rstrip("*")
            message.field.add(
                name=field,
                json_name=field,
                number=int(number),
                label=_FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL,
                type=_TYPES.get(kind, _FIELD.TYPE_MESSAGE),
                type_name=None if kind in _TYPES else f".{_PACKAGE}.{kind}",
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def _parsed(name: str, body: bytes) -> Any:  # noqa: ANN401 - of a class created here
    found = _POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(found).FromString(body)
