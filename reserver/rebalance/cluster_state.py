"""The cluster as a round reads it: nodes, pods, budgets and other protections of pods.

Values only. Kubernetes' rules for placing read `ListedPod.pod` and `ListedNode.node`, as everywhere
in Reserver; the other fields serve only the descheduler. Equal parts share one value, because most
pods of a cluster come from few templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import msgspec

from reserver.cluster.budgets import Budget
from reserver.cluster.constraints import NodeTerm, Spread, Taint
from reserver.cluster.labels import Labels
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.storage import Storage

Amounts = Mapping[str, int]
"""Resource name to amount: millicores of cpu, base units of all else."""

EVICT = "descheduler.alpha.kubernetes.io/evict"
"""Annotation of a pod: it may be evicted whatever protects it."""

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""Annotation of a pod: others are evicted first, or it is not evicted at all."""

EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
"""Annotation of a pod that another controller, such as KubeVirt, moves in the background."""

SOURCE = "kubernetes.io/config.source"
"""Annotation of a pod that a kubelet runs from elsewhere than the API server."""


class Owner(NamedTuple):
    """One of ``metadata.ownerReferences``."""

    kind: str
    name: str
    uid: str
    is_controller: bool = False


class ContainerState(NamedTuple):
    """The state of a container, as the kubelet reports it.

    Attributes:
        restarts: how often it was restarted.
        waiting: why it waits; None if it does not wait.
        terminated: why it ended; None if it has not.
        exit_code: of the container that ended; None if it has not.
    """

    restarts: int = 0
    waiting: str | None = None
    terminated: str | None = None
    exit_code: int | None = None


class ListedCondition(msgspec.Struct, frozen=True):
    """A condition of a pod.

    Attributes:
        type: of the condition.
        status: ``True``, ``False`` or ``Unknown``.
        reason: in one word.
        since: unix seconds of its last transition; None if unknown.
    """

    type: str
    status: str
    reason: str = ""
    since: float | None = None


class Preference(NamedTuple):
    """A preferred node affinity."""

    weight: int
    term: NodeTerm


class SpreadRule(NamedTuple):
    """A topology spread constraint with its ``whenUnsatisfiable``."""

    spread: Spread
    when_unsatisfiable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """A node, with the fields that only a descheduler reads.

    Attributes:
        node: the node as scheduling reads it.
        taints: all taints, with PreferNoSchedule.
        capacity: ``status.capacity``.
        is_ready: its condition Ready is True, or there is none.
        is_marked: an annotation states that a round cordoned the node to empty it.
    """

    node: Node
    taints: tuple[Taint, ...] = ()
    capacity: Amounts = field(default_factory=dict)
    is_ready: bool = True
    is_marked: bool = False

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.node.name

    @property
    def is_being_emptied(self) -> bool:
        """Whether a round empties it, and nobody has lifted the cordon since."""
        return self.is_marked and self.node.unschedulable

    @property
    def offered(self) -> Amounts:
        """The total for utilization: allocatable, or capacity without allocatable."""
        return self.node.allocatable or self.capacity


class ListedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, with the fields that only a descheduler reads.

    Attributes:
        pod: the pod as scheduling reads it.
        created: unix seconds of its creation.
        started: unix seconds of ``status.startTime``; None before its kubelet has seen it.
        phase: ``status.phase``.
        reason: ``status.reason``.
        priority: ``spec.priority``; None if it has none.
        qos: its QoS class.
        owners: ``metadata.ownerReferences``.
        annotations: the annotations that a descheduler reads.
        images: of its containers, sorted; without init containers.
        requests: its effective request by its spec alone, zeros included. A resize that is under
            way changes `pod.requests`, not this.
        named: resources that some container or init container requests.
        preferences: preferred node affinity.
        has_preferences: it has preferred node affinity, be it empty.
        has_node_rules: it has a node selector or a node affinity of any kind.
        spreads: topology spread constraints of both kinds.
        claims: PersistentVolumeClaims that its volumes name, without ephemeral ones.
        has_local_storage: it has a volume of the kind hostPath or emptyDir.
        has_resource_claims: it has ResourceClaims.
        containers: statuses of its containers.
        init_containers: statuses of its init containers.
        ephemeral_containers: statuses of its ephemeral containers.
        conditions: ``status.conditions``.
    """

    pod: Pod
    created: float = 0.0
    started: float | None = None
    phase: str = ""
    reason: str = ""
    priority: int | None = None
    qos: str = "BestEffort"
    owners: tuple[Owner, ...] = ()
    annotations: Labels = {}
    images: tuple[str, ...] = ()
    requests: Amounts = {}
    named: frozenset[str] = frozenset()
    preferences: tuple[Preference, ...] = ()
    has_preferences: bool = False
    has_node_rules: bool = False
    spreads: tuple[SpreadRule, ...] = ()
    claims: tuple[str, ...] = ()
    has_local_storage: bool = False
    has_resource_claims: bool = False
    containers: tuple[ContainerState, ...] = ()
    init_containers: tuple[ContainerState, ...] = ()
    ephemeral_containers: tuple[ContainerState, ...] = ()
    conditions: tuple[ListedCondition, ...] = ()

    @property
    def name(self) -> PodName:
        """Namespace and name."""
        return self.pod.name

    @property
    def node(self) -> str:
        """The node that it is bound to; empty while it is pending."""
        return self.pod.node


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """The nodes and pods that a cycle reads.

    Attributes:
        nodes: all nodes, by name.
        pods: all pods, sorted by namespace and name.
        namespaces: labels of the namespaces, by name.
        move_windows: annotations of the namespaces whose pods are moved at some times only.
        priority_classes: values of the PriorityClasses, by name.
        storage: claims, volumes and storage classes, as scheduling reads them.
        claim_classes: ``spec.storageClassName`` of the PersistentVolumeClaims; empty without one.
        node_usage: measured usage of nodes; unmeasured nodes are missing.
        pod_usage: measured usage of the containers of pods; unmeasured pods are missing.
    """

    nodes: Mapping[str, ListedNode] = field(default_factory=dict)
    pods: tuple[ListedPod, ...] = ()
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    move_windows: Mapping[str, str] = field(default_factory=dict)
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    storage: Storage = field(default_factory=Storage)
    claim_classes: Mapping[PodName, str] = field(default_factory=dict)
    node_usage: Mapping[str, Amounts] = field(default_factory=dict)
    pod_usage: Mapping[PodName, tuple[Amounts, ...]] = field(default_factory=dict)

    @cached_property
    def by_node(self) -> Mapping[str, tuple[ListedPod, ...]]:
        """Pods on nodes, of any phase, by the node's name; in the order of `pods`."""
        found: dict[str, list[ListedPod]] = {}
        for pod in self.pods:
            if pod.node:
                found.setdefault(pod.node, []).append(pod)
        return {node: tuple(pods) for node, pods in found.items()}
