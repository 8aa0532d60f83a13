"""On which nodes a pod fits, by kind of constraint; specs are written as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.scheduling.fit import Seat, allowed, fit, fits
from reserver.scheduling.state import State
from reserver.wire.k8s.nodes import NamespaceObject, NodeObject
from reserver.wire.k8s.objects import decode, encode
from reserver.wire.k8s.pods import PodObject
from reserver.wire.k8s.storage import ClaimObject, StorageClassObject, VolumeObject
from tests.builders import NAMESPACE, node, pod, reservation, state_of

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node_json(name: str, labels: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": name, "labels": {HOST: name, **(labels or {})}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": ROOM}}


def pod_json(
    name: str = "asking", labels: Json | None = None, namespace: str = NAMESPACE, **spec: Any
) -> Json:
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": metadata | {"labels": labels or {}}, "spec": spec}


def on(node_name: str, name: str = "", labels: Json | None = None, **rest: Any) -> Json:
    """A pod that runs on a node."""
    return pod_json(name or f"on-{node_name}", labels, nodeName=node_name, **rest)


class Cluster:
    """A cluster of what is written, which is asked where pods fit."""

    def __init__(self, *documents: Json) -> None:
        self.state = State()
        for document in documents:
            if "allocatable" in document.get("status", {}):
                self.state.node_seen(decode(NodeObject, encode(document)).value())
            else:
                self.state.pod_seen(decode(PodObject, encode(document)).value())

    def namespace(self, name: str, **labels: str) -> Cluster:
        document = {"metadata": {"name": name, "labels": labels}}
        seen = decode(NamespaceObject, encode(document))
        self.state.snapshot.namespaces[name] = seen.metadata.labels or {}
        return self

    def fitting(self, asking: Json) -> str:
        """The names of the nodes on which a pod fits; `fit` has to agree with `fits` on each."""
        snapshot = self.state.snapshot
        value = decode(PodObject, encode(asking)).value()
        possible = fits(value, snapshot)
        for name in snapshot.node_names():
            assert possible[snapshot.row(name)] == (not fit(value, name, snapshot))
        rows = snapshot.existing_rows()
        return " ".join(sorted(snapshot.name_of(row) for row in rows if possible[row]))

    def why(self, asking: Json, node_name: str) -> list[str]:
        value = decode(PodObject, encode(asking)).value()
        return [reason.message for reason in fit(value, node_name, self.state.snapshot)]


# Taints and cordons.


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Json:
    return {"key": key, "effect": effect, "value": value}


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


def term(*expressions: tuple[Any, ...]) -> Json:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values}
            for key, operator, *values in expressions
        ]
    }


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


# Resources and what is held.


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
ZONES = [
    node_json("a1", {ZONE: "a"}),
    node_json("a2", {ZONE: "a"}),
    node_json("b1", {ZONE: "b"}),
    node_json("nowhere"),
]


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


# Volumes.


def claim(name: str = "data", **rest: Any) -> Json:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if "volume" in rest else {}
    metadata = {"name": name, "namespace": NAMESPACE, **bound, **rest.pop("metadata", {})}
    spec = {"volumeName": rest.pop("volume", ""), "storageClassName": rest.pop("of", None)}
    return {"metadata": metadata, "spec": spec | rest.pop("spec", {}), **rest}


def using(name: str = "data") -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


WAITING = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
EPHEMERAL: Json = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
BINDING, ZONED = "VolumeBinding", "VolumeZone"
IN_A = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term((ZONE, "In", "a"))]}}}
SELECTED: Json = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "b1"}}}
OWNED = {"metadata": {"ownerReferences": [{"uid": "uid-asking", "controller": True}]}}
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def with_storage(claims: list[Json], spec: Json, labels: Json) -> Cluster:
    cluster = Cluster(*ZONES)
    storage = cluster.state.snapshot.storage
    for one in claims:
        value = decode(ClaimObject, encode(one)).value()
        storage.claims[value.name] = value
    volume = {"metadata": {"name": "pv", "labels": labels}, "spec": spec}
    storage.volumes["pv"] = decode(VolumeObject, encode(volume)).value()
    for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer")):
        document = {"metadata": {"name": name}, "volumeBindingMode": mode}
        storage.classes[name] = decode(StorageClassObject, encode(document)).value()
    return cluster


@pytest.mark.parametrize(
    ("claims", "spec", "labels", "nodes", "words"),
    [
        ([claim(volume="pv")], {}, {}, "a1 a2 b1 nowhere", []),
        ([claim(volume="pv")], IN_A, {}, "a1 a2", [AFFINITY]),
        (
            [claim(volume="pv")],
            {},
            {ZONE: "a"},
            "a1 a2 nowhere",
            ["node(s) had no available volume zone"],
        ),
        ([claim(volume="pv")], {}, {ZONE: "a__b"}, "a1 a2 b1 nowhere", []),
        ([claim(volume="pv")], {}, {ZONE: "a__"}, "a1 a2 b1 nowhere", []),
        (
            [claim(volume="pv")],
            {},
            {"failure-domain.beta.kubernetes.io/zone": "a"},
            "a1 a2 nowhere",
            ["node(s) had no available volume zone"],
        ),
        ([claim(volume="no")], {}, {}, "", [GONE, 'persistentvolume "no" not found']),
        ([], {}, {}, "", ['persistentvolumeclaim "data" not found']),
        ([claim(of="now")], {}, {}, "", [UNBOUND]),
        ([claim()], {}, {}, "", [UNBOUND]),
        ([claim(of="unknown")], {}, {}, "", [UNBOUND]),
        ([claim(of="later")], {}, {}, "a1 a2 b1 nowhere", []),
        ([claim(of="later", spec={"volumeName": "pv"})], {}, {}, "", [UNBOUND]),
        (
            [claim(of="later", **SELECTED)],
            {},
            {},
            "b1",
            ["node(s) didn't find available persistent volumes to bind"],
        ),
        (
            [claim(volume="pv", status={"phase": "Lost"})],
            {},
            {},
            "",
            ['persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'],
        ),
        (
            [claim(volume="pv", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})],
            {},
            {},
            "",
            ['persistentvolumeclaim "data" is being deleted', UNBOUND],
        ),
    ],
)
def test_a_pod_goes_where_its_volume_can_be_reached(
    claims: list[Json], spec: Json, labels: Json, nodes: str, words: list[str]
) -> None:
    cluster = with_storage(claims, spec, labels)
    asking = pod_json(**using())
    assert cluster.fitting(asking) == nodes
    if words:
        refused = "a1" if "a1" not in nodes else "b1"
        assert set(cluster.why(asking, refused)) <= set(words)
        assert cluster.why(asking, refused)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (
            [],
            f'{WAITING} "asking-v"',
        ),
        (
            [claim("asking-v", of="later")],
            "PVC shop/asking-v was not created for pod shop/asking (pod is not owner)",
        ),
        ([claim("asking-v", of="later", **OWNED)], ""),
    ],
)
def test_an_ephemeral_claim_is_the_pods_own(claims: list[Json], words: str) -> None:
    cluster = with_storage(claims, {}, {})
    assert cluster.why(pod_json(**EPHEMERAL), "a1") == ([words] if words else [])


def test_a_claim_for_one_pod_is_used_by_one() -> None:
    exclusive = claim(volume="pv", spec={"accessModes": ["ReadWriteOncePod"], "volumeName": "pv"})
    cluster = with_storage([exclusive], {}, {})
    asking = pod_json(**using())
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"
    other = on("a1", **using())
    cluster.state.pod_seen(decode(PodObject, encode(other)).value())
    assert cluster.fitting(asking) == ""
    cluster.state.pod_gone(decode(PodObject, encode(other)).value().name)
    assert cluster.fitting(asking) == "a1 a2 b1 nowhere"
