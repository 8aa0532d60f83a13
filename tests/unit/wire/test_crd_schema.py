"""The CRD knows each field that Reserver reads or writes: the API server drops all others."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reserver.wire import ownerform, placementform, reservation, specform

CRD = Path(__file__).parents[3] / "scheduler-config/core/crd.yaml"


def fields(kind: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def part(*path: str) -> dict[str, Any]:
    """Return the properties of a part of the schema."""
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    for step in path:
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    found: dict[str, Any] = schema["properties"]
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("spec",), specform.Spec),
        (("spec", "placement"), placementform.PlacementObject),
        (("spec", "owners"), ownerform.OwnerEntry),
        (("spec", "owners", "pod"), ownerform._Pod),
        (("spec", "owners", "controller"), ownerform._Controller),
        (("spec", "owners", "selector"), ownerform._Selector),
        (("spec", "owners", "selector", "matchExpressions"), ownerform._Expression),
        (("status",), reservation.ReservationStatus),
        (("status", "placements"), placementform.PartObject),
        (("status", "claims"), reservation.Claim),
        (("status", "conditions"), reservation.Condition),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_the_schema_and_the_reader_know_the_same_fields(path: tuple[str, ...], kind: Any) -> None:
    assert part(*path).keys() == fields(kind)


def test_every_field_is_described() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = [] if schema.get("description") else [path]
        for name, inner in schema.get("properties", {}).items():
            found += undescribed(inner, f"{path}.{name}")
            found += undescribed_items(inner, f"{path}.{name}")
        return found

    def undescribed_items(schema: dict[str, Any], path: str) -> list[str]:
        inner = schema.get("items", {}).get("properties", {})
        return [hit for name in inner for hit in undescribed(inner[name], f"{path}.{name}")]

    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert [undescribed(properties[name], name) for name in ("spec", "status")] == [[], []]
