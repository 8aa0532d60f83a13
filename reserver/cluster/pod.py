"""A pod, with the fields that scheduling needs; and KubeVirt's live migrations.

KubeVirt starts the target pod of a virtual machine before the old pod ends. An eviction of the old
pod is answered 429 by a webhook, and the migration begins (KubeVirt's docs/evacuation.md). A budget
of KubeVirt forbids evictions that would stop the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import islice
from typing import NamedTuple

from reserver.cluster.constraints import UNCONSTRAINED, Constraints
from reserver.cluster.labels import Labels

MOST_UNOFFERED = 64
"""Most resources of a pod that count although no node offers them."""


GRACE_S = 120
"""Grace period of a pod that Reserver deletes, in seconds, whatever its own grace period is."""

_EVERYWHERE = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources that every node offers."""


class PodName(NamedTuple):
    """Namespace and name, which exist before the pod does."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class PodHealth(Enum):
    """The health of a pod, as budgets count it (registry/core/pod/storage/eviction.go)."""

    READY = auto()
    UNREADY = auto()
    """The pod runs, and its condition Ready is not True."""

    NOT_RUNNING = auto()
    """The pod has not started, or has ended: no budget protects it."""


class Controller(NamedTuple):
    """The controller of a pod; both fields are empty without one."""

    kind: str = ""
    name: str = ""


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim that a pod of its namespace uses.

    Attributes:
        is_ephemeral: the claim was made for this pod and is deleted with it.
        is_inherited: the pod replaces another pod, which uses the claim until then.
    """

    name: str
    is_ephemeral: bool = False
    is_inherited: bool = False


NO_CONTROLLER = Controller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod, with the fields that placement needs.

    Attributes:
        name: namespace and name.
        uid: distinguishes this pod from an earlier pod of the same name.
        revision: resourceVersion of the object that was read; 0 if unknown.
        created: ``metadata.creationTimestamp`` as it is written, to the second; empty if unknown.
        requests: the effective request: millicores of cpu, base units of the rest, one of pods.
        node: the node that the pod is bound to; empty while it is pending.
        priority: ``spec.priority``.
        finished: the pod has succeeded or failed, and takes no more resources of its node.
        nominated_node: ``status.nominatedNodeName``, or empty.
        claims: identities of the reservations whose slots its binding claimed.
        has_preferences: the pod has preferences, which kube-scheduler scores over all nodes.
        labels: ``metadata.labels``.
        controller: kind and name of its controller.
        controller_version: the ``apiVersion`` of its controller; empty if unknown.
        group: the PodGroup that the pod is scheduled with (KEP-4671); empty for none.
        request: the ProvisioningRequest named in the pod's annotation; empty for none.
        move_window: the schedule for moves in the pod's annotation; empty for any time.
        surge: the PodMove that the pod is a copy for, or is to be removed for; empty for none.
        constraints: scheduling constraints on its node and its neighbours.
        volume_claims: the PersistentVolumeClaims that the pod uses.
        is_refused: the pod is pending, and its condition names a reservation as the reason.
        is_unschedulable: the pod is pending, and its scheduler has found no node for it.
        terminating: the pod is being deleted.
        lingers: the pod is being deleted with a grace period above `GRACE_S`.
        is_mirror: a mirror pod, by which a kubelet shows a static pod under a name that the kubelet
            chose.
        has_resource_claims: it has ResourceClaims (DRA), whose devices only kube-scheduler tracks.
        health: its health, which decides whether a PodDisruptionBudget protects it.
    """

    name: PodName
    uid: str
    revision: int = 0
    created: str = ""
    requests: Mapping[str, int] = field(default_factory=dict)
    node: str = ""
    priority: int = 0
    finished: bool = False
    nominated_node: str = ""
    claims: frozenset[str] = frozenset()
    has_preferences: bool = False
    labels: Labels = field(default_factory=dict)
    controller: Controller = NO_CONTROLLER
    controller_version: str = ""
    group: str = ""
    request: str = ""
    move_window: str = ""
    surge: str = ""
    constraints: Constraints = UNCONSTRAINED
    volume_claims: tuple[ClaimUse, ...] = ()
    is_refused: bool = False
    is_unschedulable: bool = False
    terminating: bool = False
    lingers: bool = False
    is_mirror: bool = False
    has_resource_claims: bool = False
    health: PodHealth = PodHealth.READY

    def claim_names(self) -> Iterator[PodName]:
        """Yield namespace and name of each volume claim that the pod uses."""
        return (PodName(self.name.namespace, use.name) for use in self.volume_claims)

    def bounded(self, offered: Mapping[str, object]) -> Pod:
        """Return the pod without most of its requests for resources that no node offers.

        The author of the pod can invent such resources: each counts in the total of its node, which
        is summed again with each pod that comes or goes. Requests of zero are dropped first, and
        resources that every node offers stay: perhaps no node is cached yet.
        """
        if len(self.requests) <= MOST_UNOFFERED:
            return self
        asked = (name for name, amount in self.requests.items() if amount and name not in offered)
        kept = {*islice(asked, MOST_UNOFFERED), *_EVERYWHERE, *offered}
        requests = {name: amount for name, amount in self.requests.items() if name in kept}
        return replace(self, requests=requests)


MACHINE = "VirtualMachineInstance"
"""The kind of the controller of a virtual machine's pods."""

TARGET_LABEL = "kubevirt.io/migrationJobUID"
"""The label of a migration's target pod, which stays after the migration."""


def migrates(controller: Controller) -> bool:
    """Return whether the pods of a controller move by live migrations."""
    return controller.kind == MACHINE


def is_target(pod: Pod) -> bool:
    """Return whether a pod is the target of a live migration."""
    return migrates(pod.controller) and TARGET_LABEL in pod.labels
