"""The CRD knows each field that Reserver reads or writes: the API server drops all others."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect

from reserver.k8s.objects.limits import HOME, MOST_AUTHOR, MOST_DESCRIPTION
from reserver.k8s.objects.objects import Condition
from reserver.reservations.owner import MOST_EXISTING
from reserver.stores.codec import owner_codec, placement_codec, slot_rules, spec_codec
from reserver.stores.object import codec as reservation

CRD = Path(__file__).parents[3] / "scheduler-config/core/crd.yaml"


def fields(kind: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@cache
def whole() -> dict[str, Any]:
    """Return the schema of a Reservation; reading it takes a tenth of a second."""
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def part(*path: str) -> dict[str, Any]:
    """Return the properties of a part of the schema."""
    schema = whole()
    for step in path:
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    found: dict[str, Any] = schema["properties"]
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("spec",), spec_codec.SpecFields),
        (("spec", "placement"), placement_codec.PlacementObject),
        (("spec", "owners"), owner_codec.OwnerEntry),
        (("spec", "owners", "pod"), owner_codec._Pod),
        (("spec", "owners", "controller"), owner_codec._Controller),
        (("spec", "owners", "selector"), owner_codec._Selector),
        (("spec", "owners", "replaces"), owner_codec._Replaced),
        (("spec", "owners", "selector", "matchExpressions"), owner_codec._Expression),
        (("status",), reservation.ReservationStatus),
        (("status", "placements"), placement_codec.PartObject),
        (("status", "claims"), reservation.StatusClaim),
        (("status", "moreClaims"), reservation.MoreClaims),
        (("status", "summary"), reservation.Summary),
        (("status", "conditions"), Condition),
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

    properties = whole()["properties"]
    assert [undescribed(properties[name], name) for name in ("spec", "status")] == [[], []]


def schema_of(path: str) -> dict[str, Any]:
    """Return the schema of a field of the spec; ``[]`` stands for an item, ``{}`` for a value."""
    schema: dict[str, Any] = whole()["properties"]["spec"]
    for step in path.split("."):
        name, *inner = step.replace("[]", " items").replace("{}", " additionalProperties").split()
        schema = schema["properties"][name]
        for each in inner:
            schema = schema[each]
    return schema


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY = "placement.affinity"
TERMS = {
    "nodes": f"{AFFINITY}.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
    "near": f"{AFFINITY}.podAffinity.{REQUIRED}",
    "apart": f"{AFFINITY}.podAntiAffinity.{REQUIRED}",
    "spread": "placement.topologySpreadConstraints",
}
SELECTORS = [
    f"{TERMS['near']}[].labelSelector",
    f"{TERMS['near']}[].namespaceSelector",
    f"{TERMS['apart']}[].labelSelector",
    f"{TERMS['apart']}[].namespaceSelector",
    f"{TERMS['spread']}[].labelSelector",
]
EXPRESSIONS = [
    *(f"{selector}.matchExpressions" for selector in SELECTORS),
    f"{TERMS['nodes']}[].matchExpressions",
    f"{TERMS['nodes']}[].matchFields",
]
BOUNDS = {
    "owners": ("maxItems", HOME.owners),
    "owners[].replaces.existing": ("maxItems", MOST_EXISTING),
    "owners[].selector.matchLabels": ("maxProperties", HOME.owner_labels),
    "owners[].selector.matchExpressions": ("maxItems", HOME.owner_labels),
    "owners[].selector.matchExpressions[].values": ("maxItems", HOME.values),
    "resources": ("maxProperties", HOME.resources),
    "slots": ("maximum", HOME.slots),
    "priority": ("maximum", slot_rules.MOST_PRIORITY),
    "description": ("maxLength", MOST_DESCRIPTION),
    "author": ("maxLength", MOST_AUTHOR),
    "placement.nodeSelector": ("maxProperties", HOME.labels),
    "placement.tolerations": ("maxItems", HOME.tolerations),
    "placement.topologySpreadConstraints[].maxSkew": ("maximum", 2**31 - 1),
    "placement.topologySpreadConstraints[].minDomains": ("maximum", 2**31 - 1),
    "placement.topologySpreadConstraints[].matchLabelKeys": ("maxItems", HOME.labels),
    f"{TERMS['near']}[].namespaces": ("maxItems", HOME.values),
    f"{TERMS['apart']}[].namespaces": ("maxItems", HOME.values),
    **dict.fromkeys(TERMS.values(), ("maxItems", HOME.terms)),
    **{f"{path}.matchLabels": ("maxProperties", HOME.labels) for path in SELECTORS},
    **dict.fromkeys(EXPRESSIONS, ("maxItems", HOME.labels)),
    **{f"{path}[].values": ("maxItems", HOME.values) for path in EXPRESSIONS},
}


@pytest.mark.parametrize("path", BOUNDS)
def test_the_schema_states_the_bound_of_the_reader(path: str) -> None:
    keyword, number = BOUNDS[path]
    assert schema_of(path)[keyword] == number


def unbounded(schema: dict[str, Any], path: str) -> list[str]:
    """Return the lists, maps, texts and integers without a bound in a schema."""
    kind, found = schema.get("type"), []
    if "items" in schema:
        found = unbounded(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        found = unbounded(schema["additionalProperties"], f"{path}{{}}")
    for name, inner in schema.get("properties", {}).items():
        found += unbounded(inner, f"{path}.{name}")
    is_map = kind == "object" and "properties" not in schema and schema.get("maxItems") != 0
    bounds = {
        "array": "maxItems" in schema,
        "string": "maxLength" in schema or "enum" in schema,
        "integer": "maximum" in schema or schema.get("format") == "int64",
        "object": not is_map or "maxProperties" in schema or path.endswith("Execution[]"),
    }
    is_open = not bounds.get(kind or "", True) or "x-kubernetes-preserve-unknown-fields" in schema
    return [*found, path] if is_open else found


def test_nothing_in_a_spec_is_without_a_bound() -> None:
    spec = whole()["properties"]["spec"]
    assert unbounded(spec, "spec") == []


def known(kind: Any) -> Any:
    """Return the fields of a type, all the way down; ``None`` for a type without fields."""
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: known(field.type) for field in kind.fields}
    return known(kind.item_type) if isinstance(kind, inspect.ListType) else None


def stated(schema: dict[str, Any]) -> Any:
    if "properties" in schema:
        return {name: stated(inner) for name, inner in schema["properties"].items()}
    return stated(schema["items"]) if "items" in schema else None


def test_the_schema_of_a_placement_states_all_that_the_reader_knows() -> None:
    spec = whole()["properties"]["spec"]
    placement = spec["properties"]["placement"]
    assert stated(placement) == known(inspect.type_info(placement_codec.PlacementObject))
