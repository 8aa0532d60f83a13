"""Nodes and namespaces on the wire, and the annotations that stop autoscalers."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.cluster import quantity
from reserver.cluster.constraints import Taint
from reserver.cluster.node import LIFECYCLE, READY, Node, NodeCondition
from reserver.k8s.objects.limits import MOST_OFFERED
from reserver.k8s.objects.objects import Metadata, WireStruct
from reserver.k8s.objects.requests import Amounts, nano

KEPT = "reserver.io/kept"
"""On a Node that Reserver keeps: the annotations of `KEEPING` that Reserver set, with commas."""

KEEPING = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
"""Annotations that prevent a node's removal: by the Cluster Autoscaler (eligibility.go of
cluster-autoscaler/core/scaledown), by Karpenter (pkg/controllers/state/statenode.go)."""

_KEEP = "true"


def is_kept(annotations: Mapping[str, str] | None) -> bool:
    """Return whether Reserver keeps a node with these annotations."""
    return KEPT in (annotations or {})


def keeping_changes(annotations: Mapping[str, str], *, is_needed: bool) -> dict[str, str | None]:
    """Return the annotations of a node to change; None removes one.

    Annotations that another client set or changed stay. A node `is_needed` if a reservation holds
    room on it, or it is kept for its pods.
    """
    if is_needed == is_kept(annotations):
        return {}
    if is_needed:
        unset = [name for name in KEEPING if name not in annotations]
        return {KEPT: ",".join(unset), **dict.fromkeys(unset, _KEEP)}
    own = [name for name in annotations[KEPT].split(",") if name in KEEPING]
    return {KEPT: None, **{name: None for name in own if annotations.get(name) == _KEEP}}


MAINTENANCE_ANNOTATION = "reserver.io/maintenance"
"""On a Node: progress of MaintenanceWindows with the node."""

EMPTYING_ANNOTATION = "reserver.io/emptying"
"""On a Node that rounds of rebalancing have cordoned and empty: start of the emptying."""

EMPTIED_ANNOTATION = "reserver.io/emptied"
"""On a Node that rounds emptied and left cordoned, for an autoscaler to remove: end of that."""

_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
_CONDITIONS = frozenset({READY, *LIFECYCLE})


class Labelled(Metadata, frozen=True):
    """``metadata`` with labels."""

    labels: dict[str, str] | None = None


class _Taint(WireStruct, frozen=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(WireStruct, frozen=True):
    """``spec`` of a Node."""

    taints: list[_Taint] | None = None
    unschedulable: bool = False


class _Condition(WireStruct, frozen=True):
    type: str
    status: str
    reason: str = ""
    last_transition_time: str | None = None


class _NodeStatus(WireStruct, frozen=True):
    allocatable: Amounts | None = None
    conditions: list[_Condition] | None = None


class NodeObject(WireStruct, frozen=True):
    """A Node on the wire."""

    MOST_BYTES = 1_048_576

    metadata: Labelled = Labelled()
    spec: NodeSpec = NodeSpec()
    status: _NodeStatus = _NodeStatus()

    def value(self) -> Node:
        """Return the node as a value for decisions.

        Raises:
            InvalidInput: a quantity is malformed; the error carries its path.
        """
        offered = nano(_native_first(self.status.allocatable or {}), "status.allocatable")
        return Node(
            name=self.metadata.name,
            allocatable={name: quantity.to_unit(name, value) for name, value in offered.items()},
            labels=self.metadata.labels or {},
            taints=tuple(
                Taint(taint.key, taint.value, taint.effect)
                for taint in self.spec.taints or ()
                if taint.effect in _KEEPS_AWAY
            ),
            unschedulable=self.spec.unschedulable,
            is_kept=is_kept(self.metadata.annotations),
            conditions={
                each.type: NodeCondition(each.status, each.reason, each.last_transition_time or "")
                for each in self.status.conditions or ()
                if each.type in _CONDITIONS
            },
            maintenance=(self.metadata.annotations or {}).get(MAINTENANCE_ANNOTATION, ""),
        )


def _native_first(amounts: Amounts) -> Amounts:
    """Return at most `MOST_OFFERED` amounts; resources without a domain come first."""
    if len(amounts) <= MOST_OFFERED:
        return amounts
    names = sorted(amounts, key=lambda name: ("/" in name, name))
    return {name: amounts[name] for name in names[:MOST_OFFERED]}


class NamespaceObject(WireStruct, frozen=True):
    """A Namespace on the wire."""

    MOST_BYTES = 1_048_576

    metadata: Labelled = Labelled()
