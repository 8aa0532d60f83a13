"""Pods and nodes as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.sim.apiserver.status import Json
from reserver.wire.k8s.nodes import NodeObject
from reserver.wire.k8s.objects import decode
from reserver.wire.k8s.pods import PodObject

_TYPE_FIELDS = frozenset({"kind", "apiVersion"})


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod: as a value, and all that was sent of it.

    Attributes:
        pod: what placing it depends on.
        content: the object, without kind and apiVersion, as kube-scheduler passes it on.
    """

    pod: Pod
    content: Json

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/namespaces/{self.pod.name.namespace}/pods/{self.pod.name.name}"

    @property
    def scheduler(self) -> str:
        """The scheduler that it wants."""
        name: str = self.content["spec"].get("schedulerName", "default-scheduler")
        return name

    @property
    def selector(self) -> Mapping[str, str]:
        """The labels that its node must have."""
        labels: dict[str, str] = self.content["spec"].get("nodeSelector", {})
        return labels

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.content["metadata"]

    @property
    def is_gated(self) -> bool:
        """Whether it does not want to be scheduled yet."""
        return bool(self.content["spec"].get("schedulingGates"))

    def condition(self, kind: str) -> Json | None:
        """Return a condition of its status."""
        conditions: list[Json] = self.content["status"].get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), None)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node.

    Attributes:
        node: its name and what it can carry.
        labels: its labels.
        cordoned: whether `spec.unschedulable` is set.
        scheduling: all that may make it feasible for another pod (`NodeSchedulingPropertiesChange`
            in framework/events.go).
    """

    node: Node
    labels: Mapping[str, str]
    cordoned: bool
    scheduling: object


def parse_pod(raw: bytes) -> PodView:
    """Read a pod's JSON."""
    content: Json = msgspec.json.decode(raw)
    content = {key: value for key, value in content.items() if key not in _TYPE_FIELDS}
    content.setdefault("status", {})
    # kube-scheduler's informers drop them, so that extenders never see them.
    content["metadata"].pop("managedFields", None)
    return PodView(decode(PodObject, raw).value(), content)


def parse_node(raw: bytes) -> NodeView:
    """Read a node's JSON."""
    content: Json = msgspec.json.decode(raw)
    metadata, spec = content["metadata"], content.get("spec", {})
    node = decode(NodeObject, raw).value()
    conditions = content.get("status", {}).get("conditions", ())
    labels: dict[str, str] = metadata.get("labels", {})
    scheduling = (
        node.allocatable,
        labels,
        metadata.get("annotations"),
        spec.get("taints"),
        spec.get("unschedulable"),
        [(condition["type"], condition["status"]) for condition in conditions],
    )
    return NodeView(node, labels, bool(spec.get("unschedulable")), scheduling)
