"""Nodes on which a pod fits by their labels, taints and resources; specs as users write them."""

from __future__ import annotations

import pytest

from reserver.scheduling.fit import Seat, allowed, fit, fits
from tests.builders import node, pod, reservation, state_of
from tests.unit.scheduling.documents import (
    ZONE,
    Cluster,
    Json,
    node_json,
    on,
    pod_json,
    taint,
    term,
)

# Taints and cordons.


@pytest.mark.parametrize(
    ("taints", "tolerations", "does_fit"),
    [
        ([taint("a")], [], False),
        ([taint("a", "NoExecute")], [], False),
        ([taint("a", "PreferNoSchedule")], [], True),
        ([taint("a")], [{"key": "a", "operator": "Exists"}], True),
        ([taint("a")], [{"operator": "Exists"}], True),
        ([taint("a")], [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], False),
        ([taint("a", value="x")], [{"key": "a", "value": "x"}], True),
        ([taint("a", value="x")], [{"key": "a", "operator": "Equal", "value": "y"}], False),
        ([taint("a", value="x")], [{"key": "a"}], False),
        ([taint("a"), taint("b")], [{"key": "a", "operator": "Exists"}], False),
        ([taint("a"), taint("a", "NoExecute")], [{"key": "a", "operator": "Exists"}], True),
        ([taint("a", value="5")], [{"key": "a", "operator": "Lt", "value": "9"}], False),
        ([taint("a", value="5")], [{"key": "a", "operator": "Gt", "value": "1"}], False),
        ([taint("node.kubernetes.io/memory-pressure")], [], False),
        ([taint("node.kubernetes.io/unreachable", "NoExecute")], [], False),
    ],
)
def test_a_pod_tolerates_a_nodes_taints_or_stays_away(
    taints: list[Json], tolerations: list[Json], *, does_fit: bool
) -> None:
    cluster = Cluster(node_json("n", taints=taints))
    asking = pod_json(tolerations=tolerations)
    assert cluster.fitting(asking) == ("n" if does_fit else "")
    assert cluster.why(asking, "n") == ([] if does_fit else ["node(s) had untolerated taint(s)"])


@pytest.mark.parametrize(
    ("tolerations", "does_fit"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", "value": "true"}], False),
    ],
)
def test_a_cordoned_node_takes_only_who_tolerates_that(
    tolerations: list[Json], *, does_fit: bool
) -> None:
    cluster = Cluster(node_json("n", unschedulable=True))
    why = cluster.why(pod_json(tolerations=tolerations), "n")
    assert why == ([] if does_fit else ["node(s) were unschedulable"])


# Node selector and node affinity.

NODES = [
    node_json("a1", {ZONE: "a", "cores": "8"}),
    node_json("a2", {ZONE: "a", "cores": "16", "gpu": ""}),
    node_json("b1", {ZONE: "b", "cores": "many"}),
]


def needs(*terms: Json) -> Json:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def field(operator: str, *values: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"nodeSelector": {ZONE: "a"}}, "a1 a2"),
        ({"nodeSelector": {ZONE: "a", "gpu": ""}}, "a2"),
        ({"nodeSelector": {"gpu": "x"}}, ""),
        ({"nodeSelector": {}}, "a1 a2 b1"),
        (needs(term((ZONE, "In", "a", "c"))), "a1 a2"),
        (needs(term((ZONE, "NotIn", "a"))), "b1"),
        (needs(term(("gpu", "NotIn", "x"))), "a1 a2 b1"),
        (needs(term(("gpu", "Exists"))), "a2"),
        (needs(term(("gpu", "DoesNotExist"))), "a1 b1"),
        (needs(term(("cores", "Gt", "8"))), "a2"),
        (needs(term(("cores", "Lt", "16"))), "a1"),
        (needs(term(("cores", "Gt", "few"))), ""),
        (needs(term(("cores", "Gt", "1", "2"))), ""),
        (needs(term((ZONE, "In"))), ""),
        (needs(term((ZONE, "In", "not a label"))), ""),
        (needs(term((ZONE, "Like", "a"))), ""),
        (needs(term((ZONE, "In", "a"), ("gpu", "Exists"))), "a2"),
        (needs(term(("gpu", "Exists")), term((ZONE, "In", "b"))), "a2 b1"),
        (needs(term((ZONE, "Like", "a")), term((ZONE, "In", "b"))), "b1"),
        (needs({}), ""),
        (needs(), ""),
        (needs(field("In", "b1")), "b1"),
        (needs(field("NotIn", "b1")), "a1 a2"),
        (needs(field("In", "a1", "a2")), ""),
        (needs(term((ZONE, "In", "a")) | field("NotIn", "a1")), "a2"),
        (needs(term((ZONE, "In", "a"))) | {"nodeSelector": {"gpu": ""}}, "a2"),
    ],
)
def test_a_pod_chooses_its_nodes(spec: Json, nodes: str) -> None:
    cluster = Cluster(*NODES)
    assert cluster.fitting(pod_json(**spec)) == nodes
    for name in {"a1", "a2", "b1"} - set(nodes.split()):
        words = ["node(s) didn't match Pod's node affinity/selector"]
        assert cluster.why(pod_json(**spec), name) == words


# Host ports.


def ports(*entries: Json) -> Json:
    return {"containers": [{"name": "c", "ports": list(entries)}]}


@pytest.mark.parametrize(
    ("taken", "wanted", "does_fit"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"containerPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "TCP"}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 0}, {"hostPort": 0}, True),
    ],
)
def test_a_port_of_a_node_is_had_once(taken: Json, wanted: Json, *, does_fit: bool) -> None:
    cluster = Cluster(node_json("n"), node_json("empty"), on("n", **ports(taken)))
    words = "node(s) didn't have free ports for the requested pod ports"
    assert cluster.why(pod_json(**ports(wanted)), "n") == ([] if does_fit else [words])
    assert cluster.why(pod_json(**ports(wanted)), "empty") == []


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    port: list[Json] = [{"containerPort": 80, "hostPort": 80}]
    sidecar: Json = {"initContainers": [{"name": "s", "restartPolicy": "Always", "ports": port}]}
    other: Json = {"initContainers": [{"name": "i", "ports": port}]}
    cluster = Cluster(node_json("n"), on("n", **sidecar))
    assert cluster.fitting(pod_json(**ports({"hostPort": 80}))) == ""
    assert cluster.fitting(pod_json(**other)) == "n"


# Resources and holds.


def test_every_reason_is_given_in_the_order_of_kube_schedulers_plugins() -> None:
    full = [on("n", f"p{number}") for number in range(10)]
    cluster = Cluster(node_json("n", unschedulable=True, taints=[taint("a")]), *full)
    requests = {"resources": {"requests": {"cpu": "5", "x.io/fpga": "1"}}}
    asking = pod_json(nodeSelector={"a": "b"}, containers=[requests])
    assert cluster.why(asking, "n") == [
        "node(s) were unschedulable",
        "node(s) had untolerated taint(s)",
        "node(s) didn't match Pod's node affinity/selector",
        "Insufficient cpu",
        "Insufficient x.io/fpga",
        "Too many pods",
    ]


def test_room_that_is_held_for_others_is_a_reason_of_its_own() -> None:
    state = state_of(node("n", cpu="4"), reservation("r", node="n", cpu="3"))
    for cpu, why in (
        ("1", []),
        ("2", ["capacity held by reservations"]),
        ("5", ["Insufficient cpu"]),
    ):
        asking = pod("asking", cpu=cpu)
        assert [reason.message for reason in fit(asking, "n", state.snapshot)] == why
        assert fits(asking, state.snapshot)[state.snapshot.row("n")] == (not why)
        assert allowed(asking, state.snapshot)[state.snapshot.row("n")]
    own = {"n": Seat(slot={"cpu": 3000, "pods": 1}, later={})}
    assert fit(pod("owner", cpu="4"), "n", state.snapshot, own) == ()


def test_a_node_that_nobody_knows_does_not_fit() -> None:
    state = state_of(node("n", cpu="4"), reservation("r", node="ghost", cpu="3"))
    for name in ("ghost", "never-heard-of"):
        reasons = fit(pod("asking", cpu="1"), name, state.snapshot)
        assert [reason.message for reason in reasons] == ["node not known yet"]
    assert fits(pod("asking", cpu="1"), state.snapshot).sum() == 1
