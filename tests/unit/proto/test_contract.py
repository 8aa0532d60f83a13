"""The contract: the committed code is the generated code, and the files have one style."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from hack.proto.generate import ROOT, contracts, generate
from hack.proto.reference import PAGE, page
from reserver.grpc.access import call_of
from reserver.v1 import capacity_pb2, reservation_pb2, scheduler_pb2

CONTRACTS = (reservation_pb2, capacity_pb2, scheduler_pb2)
FILES = [each.DESCRIPTOR for each in CONTRACTS]
METHODS = [
    method
    for file in FILES
    for service in file.services_by_name.values()
    for method in service.methods
]


def _messages(found: Descriptor) -> list[Descriptor]:
    nested = [each for each in found.nested_types if not each.GetOptions().map_entry]
    return [found, *(deep for each in nested for deep in _messages(each))]


MESSAGES = [
    m for file in FILES for top in file.message_types_by_name.values() for m in _messages(top)
]


def test_the_committed_code_is_what_the_contract_generates(tmp_path: Path) -> None:
    (tmp_path / "reserver/v1").mkdir(parents=True)
    generate(tmp_path)
    made = {path.name: path.read_text() for path in (tmp_path / "reserver/v1").iterdir()}
    committed = {
        path.name: path.read_text() for path in (ROOT / "reserver/v1").iterdir() if path.is_file()
    }
    assert made == committed, "run `make proto`"


def test_the_committed_reference_is_what_the_contract_says() -> None:
    assert page() == PAGE.read_text(), "run `make proto`"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
def test_a_method_has_messages_of_its_own_name_and_a_right(method: object) -> None:
    name = method.name  # type: ignore[attr-defined]
    assert method.input_type.name == f"{name}Request"  # type: ignore[attr-defined]
    assert method.output_type.name == f"{name}Response"  # type: ignore[attr-defined]
    assert call_of(f"/reserver.v1.{method.containing_service.name}/{name}").verb  # type: ignore[attr-defined]


def test_enums_begin_with_nothing_and_carry_their_name() -> None:
    enums: list[EnumDescriptor] = [e for m in MESSAGES for e in m.enum_types]
    enums += [enum for file in FILES for enum in file.enum_types_by_name.values()]
    assert enums
    for enum in enums:
        prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()
        assert enum.values[0].name == f"{prefix}_UNSPECIFIED"
        assert all(value.name.startswith(f"{prefix}_") for value in enum.values)


def test_all_that_is_declared_is_documented() -> None:
    declared = re.compile(
        r"^\s*(?:message|enum|service|rpc|repeated|optional|map<|[\w.]+ \w+ = \d)"
    )
    for path in contracts():
        before = ""
        for line in path.read_text().splitlines():
            if declared.match(line) and not line.startswith(("syntax", "package", "import")):
                assert before.strip().startswith("//"), f"{path.name}: {line.strip()}"
            before = line
