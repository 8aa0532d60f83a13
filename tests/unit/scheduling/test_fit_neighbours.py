"""Nodes on which a pod fits next to other pods; specs as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pods import PodObject
from tests.builders import NAMESPACE
from tests.unit.scheduling.documents import (
    HOST,
    ZONE,
    ZONES,
    Cluster,
    Json,
    node_json,
    on,
    pod_json,
    taint,
)

# Pod affinity and anti-affinity.


def near(*terms: Json) -> Json:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def apart(*terms: Json) -> Json:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"podAntiAffinity": required}}


def those(key: str = ZONE, *, app: str | None = "web", **rest: Any) -> Json:
    selector = {} if app is None else {"labelSelector": {"matchLabels": {"app": app}}}
    return {"topologyKey": key, **selector, **rest}


WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("labels", "spec", "nodes"),
    [
        pytest.param({}, near(those()), "a1 a2", id="near"),
        pytest.param({}, near(those(HOST)), "a1", id="on the same node"),
        pytest.param({}, near(those(), those(HOST)), "a1", id="near by two keys"),
        pytest.param({}, near(those(app="db")), "", id="near nobody"),
        pytest.param({"app": "db"}, near(those(app="db")), "a1 a2 b1", id="first of its group"),
        pytest.param(WEB, near(those(), those(app="db")), "", id="terms that no one pod meets"),
        pytest.param({}, near(those(namespaces=["other"])), "", id="in another namespace"),
        pytest.param({}, near(those("rack")), "", id="near by a key that no node has"),
        pytest.param({}, near(those(app=None)), "", id="no selector means nobody"),
        pytest.param({}, near(those(labelSelector={})), "a1 a2", id="an empty one everybody"),
        pytest.param({}, apart(those()), "b1 nowhere", id="apart"),
        pytest.param({}, apart(those(HOST)), "a2 b1 nowhere", id="not on the same node"),
        pytest.param({}, apart(those(), those("rack")), "b1 nowhere", id="apart by any key"),
        pytest.param({}, apart(those(namespaces=["other"])), "a1 a2 b1 nowhere", id="elsewhere"),
        pytest.param({}, apart(those(app=None)), "a1 a2 b1 nowhere", id="apart from nobody"),
    ],
)
def test_a_pod_chooses_its_neighbours(labels: Json, spec: Json, nodes: str) -> None:
    cluster = Cluster(*ZONES, on("a1", labels=WEB), on("ghost", labels={"app": "db"}))
    assert cluster.fitting(pod_json(labels=labels, **spec)) == nodes


@pytest.mark.parametrize(
    ("there", "nodes"),
    [
        pytest.param(apart(those()), "b1 nowhere", id="it does not want web pods near"),
        pytest.param(apart(those(HOST)), "a2 b1 nowhere", id="on its node"),
        pytest.param(apart(those(app="db")), "a1 a2 b1 nowhere", id="it means others"),
        pytest.param(apart(those("rack")), "a1 a2 b1 nowhere", id="its node is in no domain"),
        pytest.param(near(those()), "a1 a2 b1 nowhere", id="affinity binds nobody else"),
    ],
)
def test_neighbours_have_a_say(there: Json, nodes: str) -> None:
    cluster = Cluster(*ZONES, on("a1", labels={"app": "db"}, **there))
    asking = pod_json(labels=WEB)
    assert cluster.fitting(asking) == nodes
    for name in {"a1", "a2", "b1", "nowhere"} - set(nodes.split()):
        words = ["node(s) didn't satisfy existing pods anti-affinity rules"]
        assert cluster.why(asking, name) == words


SELECTS_X = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
SELECTS_NOT_X = {
    "namespaceSelector": {
        "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]
    }
}


@pytest.mark.parametrize(
    ("rest", "own_means", "other_means"),
    [
        ({}, False, False),
        ({"namespaces": [NAMESPACE, "red"]}, True, True),
        ({"namespaceSelector": {}}, True, True),
        (SELECTS_X, True, False),
        (SELECTS_NOT_X, False, True),
        (SELECTS_X | {"namespaces": [NAMESPACE]}, True, True),
        ({"namespaceSelector": None}, False, False),
    ],
)
def test_a_term_is_about_its_namespaces(rest: Json, *, own_means: bool, other_means: bool) -> None:
    """`red` is labelled team=x, the asking pod's namespace is not known at all."""
    cluster = Cluster(*ZONES[:2], on("a1", "p", WEB, namespace="red")).namespace("red", team="x")
    asking = pod_json(**apart(those(**rest)))
    assert (cluster.fitting(asking) == "") == own_means
    there = on("a1", "p", namespace="red", **apart(those(**rest)))
    cluster = Cluster(*ZONES[:2], there).namespace("red", team="x")
    assert (cluster.fitting(pod_json(labels=WEB)) == "") == other_means


# Topology spread.


def spread(**constraint: Any) -> Json:
    usual = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    return {"topologySpreadConstraints": [usual | constraint]}


@pytest.mark.parametrize(
    ("labels", "spec", "nodes"),
    [
        pytest.param(WEB, spread(), "b1", id="where there are fewest"),
        pytest.param({}, spread(), "a1 a2 b1", id="one that does not count itself"),
        pytest.param(WEB, spread(maxSkew=2), "a1 a2 b1", id="more skew is allowed"),
        pytest.param(WEB, spread(topologyKey=HOST), "a2 b1 nowhere", id="by node"),
        pytest.param(
            WEB, spread(whenUnsatisfiable="ScheduleAnyway"), "a1 a2 b1 nowhere", id="soft"
        ),
        pytest.param(WEB, spread(labelSelector=None), "a1 a2 b1", id="no selector counts nobody"),
        pytest.param(WEB, spread(labelSelector={}), "a1 a2 b1", id="nor does an empty one"),
        pytest.param(WEB, spread(topologyKey="rack"), "", id="no node has the label"),
        pytest.param(WEB, spread(minDomains=3), "b1", id="too few domains count as an empty one"),
        pytest.param(WEB, spread(minDomains=3, maxSkew=2), "a1 a2 b1", id="with more skew"),
        pytest.param(
            WEB | {"version": "2"},
            spread(matchLabelKeys=["version"]),
            "a1 a2 b1",
            id="only its own version counts",
        ),
        pytest.param(
            WEB,
            spread() | {"nodeSelector": {ZONE: "a"}},
            "a1 a2",
            id="zones that it cannot have are not counted",
        ),
        pytest.param(
            WEB,
            spread(nodeAffinityPolicy="Ignore") | {"nodeSelector": {ZONE: "a"}},
            "",
            id="unless it says so",
        ),
    ],
)
def test_a_pod_is_spread(labels: Json, spec: Json, nodes: str) -> None:
    cluster = Cluster(*ZONES, on("a1", labels=WEB | {"version": "1"}))
    assert cluster.fitting(pod_json(labels=labels, **spec)) == nodes


def test_tainted_nodes_are_counted_unless_it_says_otherwise() -> None:
    nodes = [*ZONES[:2], node_json("b1", {ZONE: "b"}, taints=[taint("x")])]
    cluster = Cluster(*nodes, on("a1", labels=WEB))
    assert cluster.fitting(pod_json(labels=WEB, **spread())) == ""
    assert cluster.fitting(pod_json(labels=WEB, **spread(nodeTaintsPolicy="Honor"))) == "a1 a2"


def test_pods_that_are_being_deleted_or_done_are_not_counted() -> None:
    going, done = on("a1", "going", WEB), on("a1", "done", WEB)
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    done["status"] = {"phase": "Failed"}
    asking = pod_json(labels=WEB, **spread())
    assert Cluster(*ZONES, going, done).fitting(asking) == "a1 a2 b1"


def test_the_reason_tells_a_missing_label_from_too_many_pods() -> None:
    cluster = Cluster(*ZONES, on("a1", labels=WEB))
    asking = pod_json(labels=WEB, **spread())
    words = "node(s) didn't match pod topology spread constraints"
    assert cluster.why(asking, "a2") == [words]
    assert cluster.why(asking, "nowhere") == [f"{words} (missing required label)"]


# Bindings under way, relabelling and leaving.


def test_a_pod_that_is_being_bound_counts() -> None:
    cluster = Cluster(*ZONES)
    placed = decode(PodObject, encode(pod_json("placed", WEB))).value()
    asking = pod_json(**apart(those()))
    cluster.state.assume(placed, "a1", ())
    assert cluster.fitting(asking) == "b1 nowhere"
    cluster.state.forget(placed.uid)
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"


def test_what_is_relabelled_or_gone_counts_as_it_is_now() -> None:
    cluster = Cluster(*ZONES, on("a1", "p", WEB))
    asking = pod_json(**apart(those()))
    cluster.state.pod_seen(decode(PodObject, encode(on("a1", "p", {"app": "db"}))).value())
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"
    cluster.state.pod_seen(decode(PodObject, encode(on("a1", "p", WEB))).value())
    cluster.state.node_seen(decode(NodeObject, encode(node_json("a1", {ZONE: "b"}))).value())
    assert cluster.fitting(asking) == "a2 nowhere"
    cluster.state.node_gone("a1")
    assert cluster.fitting(asking) == "a2 b1 nowhere"
