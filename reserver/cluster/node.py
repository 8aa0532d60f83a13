"""A node, with the fields that scheduling needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.constraints import Taint
from reserver.cluster.labels import Labels

NODES = "nodes"
"""The resource by which a whole node is held: each node is one. No Node object offers
it, and the API server lets no pod request it."""

HOSTNAME = "kubernetes.io/hostname"
"""The label whose value is a node's own."""


READY = "Ready"
"""The condition of a node whose kubelet reports, and is well."""

LIFECYCLE = ("MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress")
"""The conditions of a node's maintenance (KEP-5683), in the order in which they come true. Whoever
maintains it sets and clears them; they are read on any version of Kubernetes."""


class NodeCondition(NamedTuple):
    """A condition of a node.

    Attributes:
        status: ``True``, ``False`` or ``Unknown``.
        reason: of who has set it.
        since: its last transition, as it is written.
    """

    status: str
    reason: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as far as placing pods on it is concerned.

    Attributes:
        name: ``metadata.name``.
        allocatable: ``status.allocatable``: millicores of cpu, base units of all else.
        labels: ``metadata.labels``.
        taints: all but those with the effect PreferNoSchedule.
        unschedulable: it is cordoned.
        is_kept: Reserver keeps autoscalers from removing it.
        conditions: by type: whether it is ready, and those of `LIFECYCLE`.
        maintenance: how far MaintenanceWindows are with it, as its annotation says.
    """

    name: str
    allocatable: Mapping[str, int] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    is_kept: bool = False
    conditions: Mapping[str, NodeCondition] = field(default_factory=dict)
    maintenance: str = ""
