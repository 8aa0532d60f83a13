"""Reads objects that only rebalancing needs: priority classes, claims, metrics."""

from __future__ import annotations

import msgspec

from reserver.cluster import quantity
from reserver.cluster.constraints import Taint
from reserver.cluster.pod import PodName
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.nodes import EMPTYING_ANNOTATION, NodeObject, NodeSpec
from reserver.k8s.objects.objects import Metadata, WireStruct, decode
from reserver.k8s.objects.requests import Amounts as WrittenAmounts
from reserver.k8s.objects.requests import nano
from reserver.rebalance.cluster_state import Amounts, ListedNode

Raw = bytes | msgspec.Raw


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeStatus(WireStruct, frozen=True):
    capacity: WrittenAmounts | None = None
    conditions: list[_Condition] | None = None


class _Node(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: _NodeStatus = _NodeStatus()


class _PriorityClass(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    value: Int32 = 0


class _NodeMetrics(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    usage: WrittenAmounts | None = None


class _ContainerMetrics(WireStruct, frozen=True):
    usage: WrittenAmounts | None = None


class _PodMetrics(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    containers: list[_ContainerMetrics] | None = None


def read_node(raw: Raw) -> ListedNode:
    """Return a Node as a descheduler looks at it.

    Raises:
        InvalidInput: a part is malformed; the error carries its path.
    """
    listed = decode(_Node, raw)
    taints = listed.spec.taints or ()
    readiness = [c.status for c in listed.status.conditions or () if c.type == "Ready"]
    return ListedNode(
        node=decode(NodeObject, raw).value(),
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in taints),
        capacity=_amounts(listed.status.capacity, "status.capacity"),
        is_ready=all(status == "True" for status in readiness),
        is_marked=EMPTYING_ANNOTATION in (listed.metadata.annotations or {}),
    )


def read_priority_class(raw: Raw) -> tuple[str, int]:
    """Return name and value of a PriorityClass.

    Raises:
        InvalidInput: it is malformed; the error carries the path.
    """
    found = decode(_PriorityClass, raw)
    return found.metadata.name, found.value


def read_node_metrics(raw: Raw) -> tuple[str, Amounts]:
    """Return the name and the usage of a node.

    Raises:
        InvalidInput: the metrics are malformed; the error carries the path.
    """
    found = decode(_NodeMetrics, raw)
    return found.metadata.name, _amounts(found.usage, "usage")


def read_pod_metrics(raw: Raw) -> tuple[PodName, tuple[Amounts, ...]]:
    """Return the name of a pod and what its containers use.

    Raises:
        InvalidInput: they are malformed; the error carries the path.
    """
    found = decode(_PodMetrics, raw)
    usage = (_amounts(container.usage, "containers.usage") for container in found.containers or ())
    return _name(found.metadata), tuple(usage)


def _name(metadata: Metadata) -> PodName:
    return PodName(metadata.namespace, metadata.name)


def _amounts(written: WrittenAmounts | None, path: str) -> Amounts:
    return {name: quantity.to_unit(name, amount) for name, amount in nano(written, path).items()}
