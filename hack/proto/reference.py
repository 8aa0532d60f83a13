"""Writes docs/grpc-reference.md from the comments of the contract.

A unit test compares the committed page with the contract.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from hack.proto.generate import PROTO, ROOT, contracts

PAGE = ROOT / "docs/grpc-reference.md"

Place: TypeAlias = tuple[int, ...]
"""A place in a file, as SourceCodeInfo.Location.path."""

_MESSAGE, _ENUM, _SERVICE = (
    FileDescriptorProto.DESCRIPTOR.fields_by_name[name].number
    for name in ("message_type", "enum_type", "service")
)
_FIELD, _NESTED, _NESTED_ENUM = (
    DescriptorProto.DESCRIPTOR.fields_by_name[name].number
    for name in ("field", "nested_type", "enum_type")
)
_METHOD = ServiceDescriptorProto.DESCRIPTOR.fields_by_name["method"].number
_VALUE = EnumDescriptorProto.DESCRIPTOR.fields_by_name["value"].number

_HEAD = """\
# The gRPC contract

Made by `make proto` from the comments in [`proto/reserver/v1`](../proto/reserver/v1); what the
calls are for is in [The gRPC API](grpc.md).
"""


def page() -> str:
    """Return the page that the contract says."""
    return "\n".join([_HEAD, *(line for file in _described() for line in _File(file).lines())])


class _File:
    """One file of the contract, with its comments."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments: Mapping[Place, str] = {
            tuple(at.path): "\n".join(line.strip() for line in at.leading_comments.splitlines())
            for at in file.source_code_info.location
        }

    def lines(self) -> Iterator[str]:
        for index, service in enumerate(self._file.service):
            yield from self._service(service, (_SERVICE, index))
        for index, message in enumerate(self._file.message_type):
            yield from self._message(message, (_MESSAGE, index), message.name)
        for index, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, (_ENUM, index), enum.name)

    def _service(self, service: ServiceDescriptorProto, at: Place) -> Iterator[str]:
        yield from (f"## {service.name}", "", self._comments[at], "")
        for index, method in enumerate(service.method):
            stream = "stream of " if method.server_streaming else ""
            takes, gives = _link(method.input_type), _link(method.output_type)
            comment = self._comments[*at, _METHOD, index]
            yield from (f"### {method.name}", "", f"{takes} → {stream}{gives}", "", comment, "")

    def _message(self, message: DescriptorProto, at: Place, name: str) -> Iterator[str]:
        yield from (f"### {name}", "", self._comments[at], "")
        maps = {each.name: each for each in message.nested_type if each.options.map_entry}
        if message.field:
            yield from ("| Field | Type | Meaning |", "|---|---|---|")
            for index, field in enumerate(message.field):
                comment = _in_a_line(self._comments[*at, _FIELD, index])
                yield f"| `{field.name}` | {_type(field, maps)} | {comment} |"
            yield ""
        for index, nested in enumerate(message.nested_type):
            if nested.name not in maps:
                yield from self._message(nested, (*at, _NESTED, index), f"{name}.{nested.name}")
        for index, enum in enumerate(message.enum_type):
            yield from self._enum(enum, (*at, _NESTED_ENUM, index), f"{name}.{enum.name}")

    def _enum(self, enum: EnumDescriptorProto, at: Place, name: str) -> Iterator[str]:
        yield from (f"### {name}", "", self._comments[at], "", "| Value | Meaning |", "|---|---|")
        for index, value in enumerate(enum.value):
            yield f"| `{value.name}` | {_in_a_line(self._comments[*at, _VALUE, index])} |"
        yield ""


def _described() -> Sequence[FileDescriptorProto]:
    """Return the files of the contract, reservations first.

    Raises:
        RuntimeError: they are not valid.
    """
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "set"
        arguments = [
            "protoc",
            f"--proto_path={PROTO}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            f"--descriptor_set_out={into}",
            "--include_source_info",
            *map(str, contracts()),
        ]
        if protoc.main(arguments):
            raise RuntimeError("the contracts in proto/ are not valid")
        described = FileDescriptorSet.FromString(into.read_bytes())
    return sorted(described.file, key=lambda file: "reservation" not in file.name)


def _type(field: FieldDescriptorProto, maps: Mapping[str, DescriptorProto]) -> str:
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = (_plain(each) for each in entry.field)
        return f"map of {key} to {value}"
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    optional = "optional " if field.proto3_optional else ""
    return f"{'list of ' if repeated else optional}{_plain(field)}"


def _plain(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    name = type_name.removeprefix(".reserver.v1.")
    if name == type_name:
        return type_name.removeprefix(".")  # Of google.protobuf.
    return f"[{name}](#{name.replace('.', '').lower()})"


def _in_a_line(comment: str) -> str:
    return " ".join(comment.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
