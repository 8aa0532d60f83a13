"""A cluster of what users write, which is asked where pods fit."""

from __future__ import annotations

from typing import Any

from reserver.k8s.objects.nodes import NamespaceObject, NodeObject
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.fit import fit, fits
from reserver.scheduling.state import State
from tests.builders import NAMESPACE

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
    """Return a pod that runs on a node."""
    return pod_json(name or f"on-{node_name}", labels, nodeName=node_name, **rest)


class Cluster:
    """A cluster of written objects, and the nodes on which pods fit."""

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
        """Return the nodes on which a pod fits; assert that `fit` agrees with `fits` on each."""
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


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Json:
    return {"key": key, "effect": effect, "value": value}


def term(*expressions: tuple[Any, ...]) -> Json:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values}
            for key, operator, *values in expressions
        ]
    }


ZONES = [
    node_json("a1", {ZONE: "a"}),
    node_json("a2", {ZONE: "a"}),
    node_json("b1", {ZONE: "b"}),
    node_json("nowhere"),
]
