"""A field of a reservation's spec is the same in each form and page (docs/adr/0027).

`test_crd_schema` compares the CRD.
"""

import re
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from reserver.cli.spec_flags import SpecFlags
from reserver.client import Spec
from reserver.settings.flags import declared
from reserver.stores.codec.placement_codec import PlacementObject
from reserver.stores.codec.spec_codec import EntrySpec, SpecFields
from reserver.v1.reservation_pb2 import ReservationSpec

ROOT = Path(__file__).parents[2]
FIELDS = {field.encode_name: field for field in msgspec.structs.fields(SpecFields)}
OURS = {"requestId", "origin", "author"}
"""Only Reserver writes these: nobody gives them, and the spec over gRPC does not have them."""


def documented() -> set[str]:
    """Return the fields of the first table of docs/reservations.md."""
    table = (ROOT / "docs/reservations.md").read_text().partition("| field | meaning |")[2]
    return set(re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE))


def camel(name: str) -> str:
    return msgspec.structs.fields(
        msgspec.defstruct("_", [(name, int)], rename="camel"),
    )[0].encode_name


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param({f.json_name for f in ReservationSpec.DESCRIPTOR.fields}, OURS, id="contract"),
        pytest.param({camel(each.name) for each in fields(Spec)}, OURS, id="client"),
        pytest.param(documented() - {"placements"}, set(), id="docs"),
    ],
)
def test_the_reader_and_all_others_know_the_same_fields(
    known: set[str], expected: set[str]
) -> None:
    assert known == FIELDS.keys() - expected


def test_only_entries_of_configmaps_say_where_they_are_placed() -> None:
    entry = {field.encode_name for field in msgspec.structs.fields(EntrySpec)}
    assert entry - FIELDS.keys() == {"placements"} == documented() - FIELDS.keys()


def test_the_message_has_its_fields_by_the_names_of_the_clients_spec() -> None:
    assert {f.name for f in ReservationSpec.DESCRIPTOR.fields} == {f.name for f in fields(Spec)}


def test_a_flag_is_a_field_and_only_what_needs_a_file_has_none() -> None:
    paths = {flag.path for flag in declared(SpecFlags)}
    placement = {f"placement.{f.encode_name}" for f in msgspec.structs.fields(PlacementObject)}
    others = {path for path in paths if not path.startswith(("placement.", "resources."))}
    given = {path.partition(".")[0] for path in others}
    assert given == FIELDS.keys() - OURS - {"placement"}
    assert {path for path in paths if path.startswith("placement.")} < placement


def test_the_client_leaves_out_what_the_reader_leaves_out() -> None:
    client = {
        camel(f.name): f.default for f in fields(Spec) if f.name not in {"owners", "resources"}
    }
    assert client == {name: FIELDS[name].default for name in client}
