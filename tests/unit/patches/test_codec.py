"""SchedPatches as they are written, and the schema that the API server checks them by."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reserver.cluster.labels import equals
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import TENANT
from reserver.k8s.objects.objects import Condition, ResourceMetadata, encode
from reserver.k8s.objects.selectors import StrictExpression, StrictSelector
from reserver.patches import codec, status_codec
from reserver.patches.book import PatchEntry
from reserver.patches.codec import PatchObject, read_object
from reserver.patches.model import Conflict, PatchName, SchedPatch
from reserver.patches.slots import PatchSlots, Record, Stock
from reserver.patches.status_codec import PatchStatus

CRD = Path(__file__).parents[3] / "scheduler-config/components/webhooks/crd-patch.yaml"
CREATED = "2030-01-01T00:00:00Z"
AT = 1893456000.0
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
LEAST = {
    "selector": {"matchLabels": {"service": "test"}},
    "maxCount": 1,
    "nodeSelector": {"a": "b"},
}
METADATA = ResourceMetadata(
    name="to-2", namespace="shop", uid="uid", creation_timestamp=CREATED, generation=7
)


def written(spec: Any) -> PatchObject:
    return PatchObject(metadata=METADATA, spec=msgspec.Raw(encode(spec)))


def read(**spec: Any) -> SchedPatch:
    return read_object(written({**LEAST, **spec}))


def test_a_patch_that_no_pod_could_take_is_refused() -> None:
    values = [f"{number}" * 9 for number in range(TENANT.values)]
    term = {"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term] * TENANT.terms}}}
    with pytest.raises(InvalidInput, match=r"takes \d+ bytes.*keep it under 16384"):
        read(affinity=affinity)


def test_a_patch_is_read() -> None:
    affinity = {
        "nodeAffinity": {
            PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [HOST]}}],
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [HOST]}]},
        },
        "podAntiAffinity": {
            PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}],
            REQUIRED: [{"topologyKey": "zone", "namespaces": ["shop"]}],
        },
    }
    tolerations = [
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    ]
    found = read(affinity=affinity, tolerations=tolerations, maxCount=17)
    assert (found.name, found.uid) == (PatchName("shop", "to-2"), "uid")
    assert (found.selector, found.max_count) == (equals({"service": "test"}), 17)
    assert found.injected.affinity == affinity
    assert found.injected.tolerations == tuple(tolerations)
    assert found.injected.node_selector == {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "expires_at"),
    [
        ({}, AT + 86400),
        ({"ttl": "90m"}, AT + 5400),
        ({"ttl": "0"}, None),
        ({"ttl": 0}, None),
        ({"expiresAt": "2030-01-01T01:00:00Z"}, AT + 3600),
    ],
)
def test_its_expiry_is_written_as_that_of_a_reservation(
    spec: dict[str, Any], expires_at: float | None
) -> None:
    assert read(**spec).expires_at == expires_at


def pods(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}


def nodes(**parts: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": parts}}


NOT_IN_NOTHING = [{"matchExpressions": [{"key": "a", "operator": "In"}]}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"selector": {}}, "selector"),
        ({"selector": {"matchLabels": {"a b": "c"}}}, "selector.matchLabels.a b"),
        ({"selector": {"matchLabels": {"a": "b c"}}}, "selector.matchLabels.a"),
        ({"selector": {"matchExpressions": [HOST | {"operator": "Gt"}]}}, "selector.matchExpr"),
        ({"selector": {"matchExpressions": [HOST | {"values": []}]}}, "selector.matchExpr"),
        ({"selector": {"matchLabels": {f"a{n}": "" for n in range(33)}}}, "selector"),
        ({"maxCount": 0}, "maxCount"),
        ({"maxCount": 1001}, "maxCount"),
        ({"maxCount": "1"}, "maxCount"),
        ({"nodeSelector": {}}, ""),
        ({"nodeSelector": {"a": "b c"}}, "nodeSelector.a"),
        ({"nodeSelector": {f"a{n}": "" for n in range(33)}}, ""),
        ({"ttl": "1d"}, "ttl"),
        ({"ttl": "999999999h"}, "ttl"),
        ({"ttl": "1h", "expiresAt": CREATED}, "ttl"),
        ({"expiresAt": "soon"}, "expiresAt"),
        ({"affinity": {"nodeAfinity": {}}}, "affinity.nodeAfinity"),
        ({"affinity": {"nodeAffinity": []}}, "affinity.nodeAffinity"),
        ({"affinity": {"nodeAffinity": {"required": {}}}}, "affinity.nodeAffinity.required"),
        (nodes(**{REQUIRED: {"nodeSelectorTerms": []}}), "affinity.nodeAffinity."),
        (nodes(**{REQUIRED: {"nodeSelectorTerms": NOT_IN_NOTHING}}), "affinity.nodeAffinity."),
        (nodes(**{PREFERRED: {}}), f"affinity.nodeAffinity.{PREFERRED}"),
        (nodes(**{PREFERRED: [7]}), f"affinity.nodeAffinity.{PREFERRED}[0]"),
        (nodes(**{PREFERRED: [{"weight": 1}]}), f"affinity.nodeAffinity.{PREFERRED}[0]"),
        (
            nodes(**{PREFERRED: [{"weight": 101, "preference": {}}]}),
            f"affinity.nodeAffinity.{PREFERRED}[0].weight",
        ),
        (
            nodes(**{PREFERRED: [{"weight": 1, "preference": NOT_IN_NOTHING[0]}]}),
            f"affinity.nodeAffinity.{PREFERRED}[0].preference",
        ),
        (pods(topologyKey=""), "affinity.podAffinity."),
        (pods(namespaces=["A"]), "affinity.podAffinity"),
        (pods(labelSelector={"matchLabels": {"a": "b c"}}), "affinity.podAffinity."),
        (pods(matchLabelKeys=["a"]), "affinity.podAffinity."),
        ({"tolerations": [{"operator": "Equal"}]}, "tolerations[0].key"),
        ({"tolerations": [{"key": "a b", "operator": "Exists"}]}, "tolerations[0].key"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "tolerations[0].v"),
        ({"tolerations": [{"key": "a", "value": "b c"}]}, "tolerations[0].value"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "tolerations[0].tolerationSec"),
        ({"tolerations": [{"key": "a", "effect": "No"}]}, "tolerations[0].effect"),
        ({"tolerations": [{"key": f"a{n}"} for n in range(33)]}, "tolerations"),
        ({"image": "other"}, ""),
    ],
)
def test_what_the_api_server_would_refuse_in_a_pod_is_refused(
    spec: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(**spec)
    assert refusal.value.path.startswith(f"spec.{path}".rstrip(".")), refusal.value


def test_what_is_too_long_is_refused_unread() -> None:
    with pytest.raises(InvalidInput, match="bytes are too many"):
        read(nodeSelector={"a": "b" * TENANT.spec_bytes})


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([0], "0"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")]
)
def test_slots_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert status_codec._ranges(numbers) == text
    assert status_codec._numbers(text) == frozenset(numbers)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1,,2", "1" * 9])
def test_a_status_that_reserver_did_not_write_is_refused(text: str) -> None:
    status = PatchStatus(slots=status_codec.SlotsObject(spent=text))
    with pytest.raises(InvalidInput):
        status_codec.read_record(status)
    assert len(status_codec._numbers("0-999999")) == codec.MOST_PODS + 1


RECORD = Record(
    frozenset({0, 1}),
    (Stock("me/0", frozenset({2})), Stock("he/3", frozenset({4}), is_revoked=True)),
)


def shown(record: Record = RECORD, now: float = AT, **changes: Any) -> PatchStatus:
    entry = PatchEntry(read(maxCount=5), PatchSlots("me", 5))
    entry.conflict = changes.get("conflict")
    return status_codec.show_status(entry, record, PatchStatus(), METADATA, now)


def test_a_status_is_read_as_it_is_written() -> None:
    status = shown()
    raw = msgspec.Raw(encode(status))
    assert status_codec.read_status(raw) == status
    assert status_codec.read_record(status) == RECORD
    assert status_codec.read_status(msgspec.Raw(b"")) == PatchStatus()
    assert (status.patched_pods, status.observed_generation) == (2, 7)
    assert status.expires_at == "2030-01-02T00:00:00Z"
    body = status_codec.patch_body(status, METADATA)
    assert body["metadata"] == {"resourceVersion": "", "uid": "uid"}


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        (shown(), ["Patching", "NoConflict"]),
        (shown(now=AT + 1e6), ["Expired", "NoConflict"]),
        (shown(Record(frozenset(range(5)))), ["AllPatched", "NoConflict"]),
        (shown(conflict=("web-0", Conflict("a", "no"))), ["Patching", "PodContradicts"]),
        (
            status_codec.show_invalid(InvalidInput("a", "b", "c"), shown(), METADATA, AT),
            ["Invalid"],
        ),
    ],
)
def test_conditions_say_whether_it_patches_and_what_contradicts(
    status: PatchStatus, reasons: list[str]
) -> None:
    assert [condition.reason for condition in status.conditions] == reasons


def test_a_condition_keeps_its_time_while_it_says_the_same() -> None:
    entry = PatchEntry(read(maxCount=5), PatchSlots("me", 5))
    later = status_codec.show_status(entry, RECORD, shown(), METADATA, AT + 60)
    assert later == shown()
    over = status_codec.show_status(entry, RECORD, shown(), METADATA, AT + 1e6)
    assert over.conditions[0].last_transition_time != shown().conditions[0].last_transition_time
    assert over.conditions[1] == shown().conditions[1]


@cache
def whole() -> dict[str, Any]:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return schema


def inner(*path: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": whole()}
    for step in path:
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    return schema


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("spec",), codec.PatchSpec),
        (("spec", "selector"), StrictSelector),
        (("spec", "selector", "matchExpressions"), StrictExpression),
        (("status",), PatchStatus),
        (("status", "slots"), status_codec.SlotsObject),
        (("status", "slots", "stocks"), status_codec.StockObject),
        (("status", "conditions"), Condition),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_the_schema_and_the_reader_know_the_same_fields(path: tuple[str, ...], kind: Any) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert inner(*path)["properties"].keys() == fields


def test_the_schema_states_the_bounds_of_the_reader() -> None:
    spec = inner("spec")["properties"]
    assert (spec["maxCount"]["minimum"], spec["maxCount"]["maximum"]) == (1, codec.MOST_PODS)
    assert spec["nodeSelector"]["maxProperties"] == TENANT.labels
    assert spec["tolerations"]["maxItems"] == TENANT.tolerations
    affinity = spec["affinity"]["properties"]
    for kind in affinity.values():
        lists = [kind["properties"][PREFERRED], kind["properties"][REQUIRED]]
        lists[1] = lists[1].get("properties", {}).get("nodeSelectorTerms", lists[1])
        assert [each["maxItems"] for each in lists] == [TENANT.terms] * 2


def bounded(schema: dict[str, Any], path: str) -> list[str]:
    """Return the paths of fields without a bound."""
    found = []
    kind = schema.get("type")
    if kind == "array":
        found += [] if "maxItems" in schema else [path]
        found += bounded(schema["items"], f"{path}[]")
    if kind == "string" and not schema.keys() & {"maxLength", "enum", "format"}:
        found.append(path)
    if isinstance(extra := schema.get("additionalProperties"), dict):
        found += [] if "maxProperties" in schema else [path]
        found += bounded(extra, f"{path}{{}}")
    for name, each in schema.get("properties", {}).items():
        found += bounded(each, f"{path}.{name}")
    return found


def test_everything_that_people_write_has_a_bound() -> None:
    assert bounded(whole()["spec"], "spec") == []
