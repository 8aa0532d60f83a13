"""The error of a failed call, from an exception of grpc; the details need only protobuf.

The messages have the field numbers of google.rpc, but names of this client, so that they do not
conflict with googleapis-common-protos, which the client does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from reserver.errors import ReserverError

_PACKAGE = "reserver.client"
_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_BYTES = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE

_MESSAGES: dict[str, tuple[tuple[str, int, Any, bool], ...]] = {
    "Detail": (("type_url", 1, _STRING, False), ("value", 2, _BYTES, False)),
    "Status": (("details", 3, "Detail", True),),
    "ErrorInfo": (("reason", 1, _STRING, False),),
    "FieldViolation": (("field", 1, _STRING, False), ("description", 2, _STRING, False)),
    "BadRequest": (("field_violations", 1, "FieldViolation", True),),
}
"""The fields of each message: name, number, type, and whether it is repeated."""


class ErrorDetails(NamedTuple):
    """The machine-readable reason of a refusal, and the problems by path of the field."""

    reason: str
    fields: Mapping[str, str]


def _classes() -> dict[str, type[Any]]:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}/error_details", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            made = message.field.add(name=field, number=number, label=3 if is_repeated else 1)
            if isinstance(kind, str):
                made.type_name = f".{_PACKAGE}.{kind}"
            made.type = _MESSAGE if isinstance(kind, str) else kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()


def read_details(status: bytes) -> ErrorDetails:
    """Return the details of a `google.rpc.Status`; empty if it cannot be decoded."""
    reason, fields = "", dict[str, str]()
    try:
        for detail in _CLASSES["Status"].FromString(status).details:
            kind = detail.type_url.rpartition(".")[2]
            if kind == "ErrorInfo":
                reason = _CLASSES[kind].FromString(detail.value).reason
            elif kind == "BadRequest":
                found = _CLASSES[kind].FromString(detail.value).field_violations
                fields |= {each.field: each.description for each in found}
    except DecodeError:
        pass
    return ErrorDetails(reason, fields)


_DETAILS_KEY = "grpc-status-details-bin"


class CallFailed(ReserverError):
    """A call was refused, or not answered in time.

    Attributes:
        code: name of the gRPC status code, e.g. ``RESOURCE_EXHAUSTED``.
        message: one line for a person.
        reason: for a program, e.g. ``NO_ROOM``; empty if the server gave none.
        fields: the problems, by the path of the field.
    """

    def __init__(self, code: str, message: str, reason: str, fields: Mapping[str, str]) -> None:
        super().__init__(code, message, reason, fields)
        self.code = code
        self.message = message
        self.reason = reason
        self.fields = fields

    def __str__(self) -> str:
        """Return one line for a person."""
        return f"{self.code}: {self.message}"


class FailedCall(Protocol):
    """An error of grpc, of either kind of channel."""

    def code(self) -> grpc.StatusCode:
        """Return the status."""

    def details(self) -> str | None:
        """Return the message."""

    def trailing_metadata(self) -> Any:  # noqa: ANN401 - pairs, in a type of each channel's own
        """Return the trailing metadata of the server."""


def as_failure(error: FailedCall) -> CallFailed:
    """Return the `CallFailed` of an exception of grpc."""
    metadata = dict(error.trailing_metadata() or ())
    found = read_details(metadata.get(_DETAILS_KEY, b""))
    return CallFailed(error.code().name, error.details() or "", found.reason, found.fields)
