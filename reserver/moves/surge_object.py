"""Reads ReplicaSets, Deployments and pods for surges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from reserver.cluster.quantity import shorten
from reserver.k8s.objects.limits import POD, Int32, Int64
from reserver.k8s.objects.objects import LabelledMetadata, WireStruct
from reserver.k8s.objects.pod_annotations import COST_ANNOTATION, SURGE_ANNOTATION, claimed_by
from reserver.k8s.objects.pods import OwnerReference
from reserver.k8s.objects.requests import FINISHED
from reserver.k8s.objects.selectors import LabelSelector, label_selector
from reserver.k8s.objects.times import parse_moment
from reserver.moves.model import Move
from reserver.moves.observation import ObservedCopy, ObservedOriginal

LOWEST_COST = str(-(2**31))
"""The lowest pod deletion cost, a 32-bit integer."""

_HASH = "pod-template-hash"
_MOST_SAID = 200


class OwnedMetadata(LabelledMetadata, frozen=True):
    """Metadata with owners, and whether the object is being deleted."""

    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None
    generation: Int64 = 0

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that is the controller; None without one."""
        return next((each for each in self.owner_references or () if each.controller), None)


class _SetSpec(WireStruct, frozen=True):
    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)


class _SetStatus(WireStruct, frozen=True):
    ready_replicas: Int32 = 0


class ReplicaSetObject(WireStruct, frozen=True):
    """A ReplicaSet on the wire."""

    MOST_BYTES = 262_144

    metadata: OwnedMetadata = OwnedMetadata()
    spec: _SetSpec = _SetSpec()
    status: _SetStatus = _SetStatus()

    @property
    def owner(self) -> dict[str, object]:
        """The entry of this controller in ``ownerReferences``."""
        named = {"name": self.metadata.name, "uid": self.metadata.uid, "controller": True}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", **named}

    def withheld(self) -> dict[str, str]:
        """Return labels of its pods without which it does not select a pod; empty if none.

        For a Deployment this is only the pod template hash. By all other labels Services, network
        policies, budgets and constraints select the copy from the beginning.
        """
        labels = self.spec.template.get("metadata", {}).get("labels") or {}
        selector = label_selector(self.spec.selector)
        asked = {term.key for term in selector.requirements if term.operator in {"In", "Exists"}}
        keys = {_HASH} if _HASH in asked else asked
        kept = {name: value for name, value in labels.items() if name not in keys}
        if selector.matches(kept):
            return {}
        return {name: value for name, value in labels.items() if name in keys}

    def others_unready(self, leaving: ObservedOriginal) -> str:
        """Return why it might remove a pod other than the leaving one; empty if it would not."""
        others = self.spec.replicas - 1
        ready = self.status.ready_replicas - leaving.is_ready
        if ready >= others:
            return ""
        said = f"{max(ready, 0)} of the {others} other pods of ReplicaSet {self.metadata.name}"
        return f"{said} are ready; it would remove an unready one instead of this pod"


class _Rolling(WireStruct, frozen=True):
    max_surge: int | str | None = None


class _Strategy(WireStruct, frozen=True):
    type: str = ""
    rolling_update: _Rolling | None = None


class _DeploymentSpec(WireStruct, frozen=True):
    strategy: _Strategy = _Strategy()


class _DeploymentStatus(WireStruct, frozen=True):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0


class DeploymentObject(WireStruct, frozen=True):
    """A Deployment on the wire."""

    MOST_BYTES = POD.object_bytes

    metadata: OwnedMetadata = OwnedMetadata()
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()

    def unfit(self) -> str:
        """Return why its pods cannot surge now; empty if they can."""
        name, strategy, status = self.metadata.name, self.spec.strategy, self.status
        if strategy.type == "Recreate":
            return f"Deployment {name} never runs two pods (strategy Recreate)"
        surge = strategy.rolling_update.max_surge if strategy.rolling_update else None
        if surge is not None and str(surge) in {"0", "0%"}:
            return f"Deployment {name} never runs more pods than its replicas (maxSurge {surge})"
        is_seen = status.observed_generation >= self.metadata.generation
        if not is_seen or status.updated_replicas != status.replicas:
            return f"Deployment {name} is being rolled out"
        return ""


def unfit_set(found: ReplicaSetObject) -> str:
    """Return why a ReplicaSet's pods cannot surge, regardless of its Deployment; or empty."""
    name, owner = found.metadata.name, found.metadata.controller
    if found.metadata.deletion_timestamp is not None:
        return f"ReplicaSet {name} is being deleted"
    if owner is not None and owner.kind != "Deployment":
        return (
            f"ReplicaSet {name} belongs to {owner.kind} {owner.name}, whose roll-outs are unknown"
        )
    withheld, spec = found.withheld(), found.spec.template.get("spec", {})
    if not withheld:
        return f"ReplicaSet {name} selects pods by absent labels"
    if spec.get("readinessGates") and set(withheld) != {_HASH}:
        return "its readiness gates may need the labels that the copy gets when it is ready"
    for each in spec.get("resourceClaims") or ():
        if each.get("resourceClaimName"):
            return f"only one pod can have its ResourceClaim {each['resourceClaimName']}"
    return ""


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Waiting(WireStruct, frozen=True):
    reason: str = ""
    message: str = ""


class _State(WireStruct, frozen=True):
    waiting: _Waiting | None = None


class _Container(WireStruct, frozen=True):
    name: str = ""
    state: _State | None = None


class _PodSpec(WireStruct, frozen=True):
    node_name: str = ""


class _PodStatus(WireStruct, frozen=True):
    phase: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None


class SurgingPod(WireStruct, frozen=True):
    """A pod on the wire: the pod to remove, or a copy."""

    MOST_BYTES = POD.object_bytes

    metadata: OwnedMetadata = OwnedMetadata()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations."""
        return self.metadata.annotations or {}

    def as_copy(self, move: Move, found: ReplicaSetObject, now: float) -> ObservedCopy:
        """Return the pod as the copy of a move, for its ReplicaSet, at `now` (unix seconds)."""
        metadata, controller = self.metadata, self.metadata.controller
        ready_since = self._ready_since()
        is_handed = controller is not None and controller.uid == found.metadata.uid
        is_ours = self.annotations.get(SURGE_ANNOTATION) == surge_of(move)
        is_recorded = metadata.uid == move.status.replacement.uid
        return ObservedCopy(
            name=metadata.name,
            uid=metadata.uid,
            revision=metadata.resource_version,
            node=self.spec.node_name,
            claims=claimed_by(self.annotations),
            is_foreign=not (is_ours or is_recorded),
            is_ready=ready_since is not None and now >= ready_since + found.spec.min_ready_seconds,
            is_leaving=metadata.deletion_timestamp is not None or self.status.phase in FINISHED,
            is_handed_over=is_handed,
            said=shorten(self._unready(), _MOST_SAID),
        )

    def as_leaving(self, move: Move) -> ObservedOriginal:
        """Return the pod as the one that a move has removed."""
        return ObservedOriginal(
            revision=self.metadata.resource_version,
            cost=self.annotations.get(COST_ANNOTATION, ""),
            is_marked=self.annotations.get(SURGE_ANNOTATION) == surge_of(move)
            and self.annotations.get(COST_ANNOTATION) == LOWEST_COST,
            is_ready=self._ready_since() is not None,
        )

    def _ready_since(self) -> float | None:
        for each in self.status.conditions or ():
            if each.type == "Ready" and each.status == "True":
                return parse_moment(each.last_transition_time) if each.last_transition_time else 0.0
        return None

    def _unready(self) -> str:
        """Return why the pod is not ready, from its status; may be empty."""
        for container in self.status.container_statuses or ():
            if container.state is not None and container.state.waiting is not None:
                waiting = container.state.waiting
                said = f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
                return f"container {container.name} waits: {said}"
        for kind in ("PodScheduled", "Ready"):
            for each in self.status.conditions or ():
                if each.type == kind and each.status != "True" and (each.message or each.reason):
                    return each.message or each.reason
        return ""


def surge_of(move: Move) -> str:
    """Return the name and UID of a move, for the annotation of its pods."""
    return f"{move.name.name}/{move.uid}"
