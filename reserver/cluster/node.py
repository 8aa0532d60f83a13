"""Nodes, with the fields that scheduling needs; their labels, taints and cordons by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import ABSENT, Bools, Categorical, Ids
from reserver.cluster.constraints import NodeTerm, Taint
from reserver.cluster.labels import Labels, LabelTable

NODES = "nodes"
"""The resource that stands for a whole node in a hold: each node is one. No Node object offers
it, and the API server lets no pod request it."""

HOSTNAME = "kubernetes.io/hostname"
"""The label whose value is unique to a node."""


READY = "Ready"
"""The condition of a healthy node whose kubelet reports."""

LIFECYCLE = ("MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress")
"""The conditions of a node's maintenance (KEP-5683), in the order in which they become true. The
maintainer of the node sets and clears them; they are read on any version of Kubernetes."""


class NodeCondition(NamedTuple):
    """A condition of a node.

    Attributes:
        status: ``True``, ``False`` or ``Unknown``.
        reason: reason that the writer of the condition gives.
        since: ``lastTransitionTime`` as it is written.
    """

    status: str
    reason: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, with the fields that placement needs.

    Attributes:
        name: ``metadata.name``.
        allocatable: ``status.allocatable``: millicores of cpu, base units of other resources.
        labels: ``metadata.labels``.
        taints: all taints except those with the effect PreferNoSchedule.
        unschedulable: the node is cordoned.
        is_kept: Reserver keeps autoscalers from removing the node.
        conditions: `READY` and the conditions of `LIFECYCLE`, by type.
        maintenance: progress of MaintenanceWindows with the node, from its annotation.
    """

    name: str
    allocatable: Mapping[str, int] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    is_kept: bool = False
    conditions: Mapping[str, NodeCondition] = field(default_factory=dict)
    maintenance: str = ""


CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that a pod must tolerate to be scheduled to a cordoned node."""

REMOVING = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"})
"""The taints with which autoscalers drain a node before its removal: Cluster Autoscaler
(utils/taints/taints.go), Karpenter (pkg/apis/v1/taints.go). Both are NoSchedule."""


_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Key prefixes of temporary taints that show a condition of a node, for example that it has just
joined or is unreachable (node lifecycle controller, cloud controllers)."""


def passes(taint: Taint) -> bool:
    """Return whether a taint shows a condition of a node, and so may be temporary."""
    return taint.key.startswith(_CONDITIONS)


class Topology:
    """The labels, taints and cordons of nodes.

    Attributes:
        labels: labels of the nodes.
        taints: the taints that keep pods away; no value for a node without any.
        cordoned: bool array, rows: ``spec.unschedulable``.
    """

    def __init__(self, size: int) -> None:
        """Begin with `size` rows without a node."""
        self.labels = LabelTable(size)
        self.taints: Categorical[tuple[Taint, ...]] = Categorical(size)
        self.cordoned: Bools = np.zeros(size, dtype=np.bool_)
        self._fields = LabelTable(size)

    def grow(self, size: int) -> None:
        """Grow to `size` rows."""
        self.labels.grow(size)
        self.taints.grow(size)
        self._fields.grow(size)
        self.cordoned = np.pad(self.cordoned, (0, size - len(self.cordoned)))

    def put(self, row: int, node: Node | None) -> None:
        """Set the labels, taints and cordon of a Node object; None once it is deleted."""
        self.labels.put(row, node.labels if node else None)
        self._fields.put(row, {"metadata.name": node.name} if node else None)
        self.taints.put(row, (node.taints or None) if node else None)
        self.cordoned[row] = node is not None and node.unschedulable

    def closed(self) -> dict[int, Taint]:
        """Return the rows of cordoned and drained nodes, each with the taint that closes it.

        A taint with the effect NoExecute evicts pods. A NoSchedule taint may mark a pool for
        certain pods, so of these only the taints of autoscalers count.
        """
        leaving = {
            number: taint
            for number, taints in self.taints.items()
            for taint in reversed(taints)
            if taint.effect == "NoExecute" or taint.key in REMOVING
        }
        rows = np.flatnonzero(self.cordoned | self.taints.having(leaving)).tolist()
        return {row: leaving.get(int(self.taints.ids[row]), CORDON) for row in rows}

    def taints_at(self, row: int) -> tuple[Taint, ...]:
        """Return the taints that keep pods away from a row's node."""
        return self.taints.at(row) or ()

    def is_reopening(self, row: int) -> bool:
        """Return whether a row's node was uncordoned, and its taint is still there.

        The node lifecycle controller removes the taint a moment later
        (pkg/controller/nodelifecycle/node_lifecycle_controller.go).
        """
        tainted = self.taints.where(lambda taints: CORDON in taints)
        return bool(tainted[row]) and not self.cordoned[row]

    def meeting(self, terms: Iterable[NodeTerm]) -> Bools:
        """Return, for each row, whether it meets one of the terms (`MatchNodeSelectorTerms`)."""
        rows = np.zeros(len(self.cordoned), dtype=np.bool_)
        for term in terms:
            rows |= self.labels.matching(term.labels) & self._fields.matching(term.fields)
        return rows

    def domains_of(self, key: str, rows: Ids) -> Bools:
        """Return, for each row, whether it shares a domain with any of the given rows.

        Args:
            key: the label whose equal values make a domain; a node without it is in none.
            rows: row numbers, possibly repeated.
        """
        column = self.labels.column(key)
        inhabited = np.zeros(column.width + 1, dtype=np.bool_)
        inhabited[column.ids[rows]] = True
        inhabited[ABSENT] = False
        same: Bools = inhabited[column.ids]
        return same
