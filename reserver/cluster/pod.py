"""A pod, with the fields that scheduling needs; and KubeVirt's live migrations.

The pod that a virtual machine moves to runs before the old one ends. Who evicts the old pod is
answered 429 by a webhook, and the migration begins (KubeVirt's docs/evacuation.md). A budget of
KubeVirt forbids evictions that would end the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from reserver.cluster.constraints import UNCONSTRAINED, Constraints
from reserver.cluster.labels import Labels

MOST_UNOFFERED = 64
"""How many of the resources count that a pod requests and no node offers."""


GRACE_S = 120
"""How long a pod has to end that Reserver deletes, in seconds, whatever its own grace period is."""

_EVERYWHERE = ("cpu", "memory", "ephemeral-storage", "pods")
"""What every node offers."""


class PodName(NamedTuple):
    """Namespace and name, which are known before the pod exists."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Controller(NamedTuple):
    """The controller that made a pod; both empty if none did."""

    kind: str = ""
    name: str = ""


class ClaimUse(NamedTuple):
    """A PersistentVolumeClaim in a pod's namespace that it uses.

    Attributes:
        is_ephemeral: the claim was made for this pod and is deleted with it.
        is_inherited: the pod comes after another one, which has the claim until then.
    """

    name: str
    is_ephemeral: bool = False
    is_inherited: bool = False


NO_CONTROLLER = Controller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod, as far as placing it is concerned.

    Attributes:
        name: namespace and name.
        uid: tells this pod from an earlier one of the same name.
        revision: the resourceVersion that this was read at; 0 if unknown.
        created: ``metadata.creationTimestamp`` as it is written, to the second; empty if unknown.
        requests: the effective request: millicores of cpu, base units of all else, one of pods.
        node: the node that it is bound to; empty while it is pending.
        priority: ``spec.priority``.
        finished: it has succeeded or failed, and no longer takes anything from its node.
        nominated_node: ``status.nominatedNodeName``, or empty.
        claims: identities of the reservations whose slots its binding took.
        has_preferences: it has preferences, which kube-scheduler scores over all nodes.
        labels: ``metadata.labels``.
        controller: its controller.
        controller_version: the ``apiVersion`` of that; empty if unknown.
        group: the PodGroup that it is scheduled with (KEP-4671); empty for none.
        request: the ProvisioningRequest that it says it was provisioned by; empty for none.
        move_window: in which window it may be moved, as its annotation says; empty for any time.
        surge: the PodMove that it is a copy for, or is to be removed for; empty for none.
        constraints: what it demands of its node and its neighbours.
        volume_claims: the PersistentVolumeClaims that it uses.
        is_refused: it is pending, and its condition says that a reservation keeps it from a node.
        is_unschedulable: it is pending, and its scheduler has found no node for it.
        terminating: it is being deleted.
        lingers: it is, and has more time for that than `GRACE_S`.
        is_mirror: a mirror pod: its kubelet shows with it what it runs from a file, under a name
            that the kubelet chose.
        has_resource_claims: it has ResourceClaims (DRA), whose devices only kube-scheduler knows.
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

    def claim_names(self) -> Iterator[PodName]:
        """Yield namespace and name of each volume claim that it uses."""
        return (PodName(self.name.namespace, use.name) for use in self.volume_claims)

    def bounded(self, offered: Mapping[str, object]) -> Pod:
        """Return it without most of the resources that it requests and no node offers.

        They are its author's to invent: each counts in the total of its node, which every pod that
        comes there or goes has summed up anew. Those of which it requests nothing go first, and
        those that any node offers stay: perhaps no node has been shown yet.
        """
        if len(self.requests) <= MOST_UNOFFERED:
            return self
        meant = (name for name, amount in self.requests.items() if amount and name not in offered)
        kept = {*islice(meant, MOST_UNOFFERED), *_EVERYWHERE, *offered}
        requests = {name: amount for name, amount in self.requests.items() if name in kept}
        return replace(self, requests=requests)


MACHINE = "VirtualMachineInstance"
"""The kind of what controls the pods of a virtual machine."""

TARGET_LABEL = "kubevirt.io/migrationJobUID"
"""The label of a pod that a virtual machine migrates to, or has migrated to."""


def migrates(controller: Controller) -> bool:
    """Return whether the pods of a controller move by live migrations."""
    return controller.kind == MACHINE


def is_target(pod: Pod) -> bool:
    """Return whether a live migration has made a pod."""
    return migrates(pod.controller) and TARGET_LABEL in pod.labels
