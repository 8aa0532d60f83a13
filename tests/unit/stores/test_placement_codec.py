"""The fields of ``placement``, and the paths of its errors."""

import json
from typing import Any

import pytest

from reserver.cluster import quantity
from reserver.cluster.constraints import PodTerm, Spread, Toleration
from reserver.cluster.labels import equals
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import encode
from reserver.reservations.enums import Strategy
from reserver.reservations.placement import ANYWHERE, Placement
from reserver.stores.codec import placement_codec
from reserver.stores.configmap.entries import read_key
from tests.builders import NOW, parts, ref

NODES = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
NEAR = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
NODE_TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
POD_TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def affinity(kind: str, required: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def nodes(*terms: Any) -> dict[str, Any]:
    return affinity("nodeAffinity", {"nodeSelectorTerms": list(terms)})


def near(*terms: Any) -> dict[str, Any]:
    return affinity("podAffinity", list(terms))


def read(document: Any) -> Placement:
    return placement_codec.read(document, "shop")


def test_it_is_read_as_the_spec_of_a_pod_is() -> None:
    placement = read(
        {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}],
            "topologySpreadConstraints": [SPREAD | {"labelSelector": {"matchLabels": {"a": "b"}}}],
            "strategy": "spread",
        }
        | near(POD_TERM)
    )
    demands = placement.constraints
    assert demands.node_selector == equals({"disk": "ssd"})
    assert demands.tolerations == (Toleration("gpu", "Exists"),)
    assert demands.spread == (Spread(topology_key="zone", selector=equals({"a": "b"})),)
    assert demands.affinity == (PodTerm(equals({"app": "web"}), "zone", frozenset({"shop"})),)
    assert placement.strategy is Strategy.SPREAD


@pytest.mark.parametrize(
    "document",
    [{}, {"strategy": "pack"}, {"nodeSelector": {}, "tolerations": None, "affinity": {}}],
    ids=["nothing", "the default", "empty parts"],
)
def test_what_demands_nothing_says_the_same(document: dict[str, Any]) -> None:
    assert read(document) == ANYWHERE


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], ""),
        ("anywhere", ""),
        ({"nodeselector": {"a": "b"}}, "nodeselector"),
        ({"nodeSelector": {"a": 1}}, "nodeSelector[...]"),
        ({"nodeSelector": {"a b": "c"}}, "nodeSelector.a b"),
        ({"nodeSelector": {"a": "b c"}}, "nodeSelector.a"),
        ({"nodeSelector": ["a"]}, "nodeSelector"),
        ({"strategy": "tight"}, "strategy"),
        ({"strategy": 1}, "strategy"),
        ({"affinity": {"nodeaffinity": {}}}, "affinity.nodeaffinity"),
        (
            nodes({"matchExpression": []}),
            f"{NODES}[0].matchExpression",
        ),
        (
            nodes({"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}),
            f"{NODES}[0].matchExpressions[0].operator",
        ),
        (
            nodes(NODE_TERM, {"matchExpressions": [{"key": "a", "operator": "In"}]}),
            f"{NODES}[1].matchExpressions[0].values",
        ),
        (
            nodes({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["b"]}]}),
            f"{NODES}[0].matchFields[0]",
        ),
        (
            near(POD_TERM | {"topologyKey": ""}),
            f"{NEAR}[0].topologyKey",
        ),
        (
            near({"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b c"}}}),
            f"{NEAR}[0].labelSelector.matchLabels.a",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}
                }
            },
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        ),
        ({"tolerations": [{"key": "a", "effekt": "x"}]}, "tolerations[0].effekt"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "tolerations[0].effect"),
        ({"tolerations": [{"operator": "Equal"}]}, "tolerations[0].key"),
        ({"tolerations": [{"key": "a", "operator": "exists"}]}, "tolerations[0].operator"),
        ({"tolerations": {"key": "a"}}, "tolerations"),
        (
            {"topologySpreadConstraints": [SPREAD | {"maxSkew": 0}]},
            "topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]},
            "topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            {"topologySpreadConstraints": [SPREAD | {"minDomains": 0}]},
            "topologySpreadConstraints[0].minDomains",
        ),
        (
            {"topologySpreadConstraints": [SPREAD | {"nodeTaintsPolicy": "yes"}]},
            "topologySpreadConstraints[0].nodeTaintsPolicy",
        ),
        ({"x" * 1_000_000: 1}, quantity.shorten("x" * 1_000_000)),
    ],
)
def test_what_would_have_no_effect_is_refused_at_its_field(document: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(document)
    found = caught.value
    assert found.path == path
    assert found.remedy
    assert len(str(found)) < 600
    encode(str(found))


def entry(**more: Any) -> str:
    owners = [{"pod": {"name": "a"}}]
    return json.dumps({"owners": owners, "resources": {"cpu": "1"}, "ttl": 0} | more)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"node": "a", "placement": {}}, "placement"),
        ({"placement": {"affinity": 1}}, "placement.affinity"),
        ({"placements": {}}, "placements"),
        ({"placements": [{"node": "A B", "slots": 1}]}, "placements[0].node"),
        ({"placements": [{"node": "a", "slots": 0}]}, "placements[0].slots"),
        ({"placements": [{"node": "a", "slots": 1}] * 2}, "placements"),
        ({"placements": [{"node": "a"}]}, "placements[0]"),
        ({"slots": 21, "placement": {"topologySpreadConstraints": [SPREAD]}}, "slots"),
    ],
)
def test_an_entry_is_refused_at_its_field(more: dict[str, Any], path: str) -> None:
    (problem,) = read_key(ref("r"), entry(**more), NOW).problems
    assert problem.error.path == path


def test_where_it_was_placed_is_no_part_of_what_it_says() -> None:
    (bare,) = read_key(ref("r"), entry(slots=3), NOW).reservations
    written = [{"node": "a", "slots": 2}, {"node": "b", "slots": 4}]
    (placed,) = read_key(ref("r"), entry(slots=3, placements=written), NOW).reservations
    assert placed.placed == parts({"a": 2, "b": 1})
    assert placed.identity == bare.identity
    (named,) = read_key(ref("r"), entry(node="c", placements=written), NOW).reservations
    assert named.placed == ()


def test_another_placement_is_another_reservation() -> None:
    documents: list[dict[str, Any]] = [{}, {"strategy": "spread"}, {"nodeSelector": {"a": "b"}}]
    found = [read_key(ref("r"), entry(placement=each), NOW).reservations for each in documents]
    assert len({each[0].digest for each in found}) == 3
