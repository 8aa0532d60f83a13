"""Pods as the API server and kube-scheduler send them.

Most pods of a cluster come from few templates, so their inputs for decisions are mostly equal.
Results are cached by these bytes: a look-up takes a fraction of the time of parsing. Rare fields
(host ports, volume claims, constraints) stay JSON until they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from reserver.cluster.byte_cache import ByteCache, reckoned
from reserver.cluster.labels import UNREAD, Labels
from reserver.cluster.pod import GRACE_S, NO_CONTROLLER, ClaimUse, Controller, Pod, PodName
from reserver.k8s.objects.constraints import BEYOND, Demands, WrittenDemands, pod_demands
from reserver.k8s.objects.limits import MOST_NAME, POD, Int32
from reserver.k8s.objects.objects import Metadata, WireStruct, decode_part
from reserver.k8s.objects.pod_annotations import (
    DECISIVE,
    MIRROR_ANNOTATION,
    claimed_by,
    move_window,
    provisioned_by,
    surged_by,
)
from reserver.k8s.objects.requests import (
    FINISHED,
    Actuated,
    PodCondition,
    Requesting,
    current,
    health,
    request,
)

_ABSENT = msgspec.Raw()
_NONE = frozenset({b"", b"null", b"[]"})
_NO_CONDITION = PodCondition("PodScheduled")


class Owned(Metadata, frozen=True):
    """``metadata`` with labels and owners."""

    labels: msgspec.Raw = _ABSENT
    owner_references: msgspec.Raw = _ABSENT
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    generation: int = 0

    @property
    def created(self) -> str:
        """Creation time as it is written; empty if unknown."""
        return self.creation_timestamp or ""


class _SchedulingGroup(WireStruct, frozen=True):
    pod_group_name: str | None = None


class PodSpec(Requesting, frozen=True):
    """``spec`` of a pod; rare fields stay JSON."""

    node_name: str = ""
    priority: Int32 | None = None
    node_selector: msgspec.Raw = _ABSENT
    affinity: msgspec.Raw = _ABSENT
    tolerations: msgspec.Raw = _ABSENT
    topology_spread_constraints: msgspec.Raw = _ABSENT
    volumes: msgspec.Raw = _ABSENT
    resource_claims: msgspec.Raw = _ABSENT
    scheduling_group: _SchedulingGroup | None = None


class PodStatus(Actuated, frozen=True):
    """``status`` of a pod."""

    phase: str = ""
    nominated_node_name: str = ""


class _Bound(WireStruct, frozen=True):
    node_name: str = ""


class _Phase(WireStruct, frozen=True):
    phase: str = ""


class BoundPod(WireStruct, frozen=True):
    """Node and phase: the only fields that are read of an unreadable pod."""

    metadata: Metadata = Metadata()
    spec: _Bound = _Bound()
    status: _Phase = _Phase()


class OwnerReference(WireStruct, frozen=True):
    """One owner of an object."""

    kind: str
    name: str
    uid: str
    controller: bool | None = None
    api_version: str = ""


class _ClaimSource(WireStruct, frozen=True):
    claim_name: str = ""


class _EphemeralSource(WireStruct, frozen=True):
    """The presence of the field is the only information."""


class _Volume(WireStruct, frozen=True):
    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: _EphemeralSource | None = None


class Shared(NamedTuple):
    """The values that the pods of a template share; the controller with its apiVersion."""

    requests: Mapping[str, int]
    labels: Labels
    made_by: tuple[Controller, str]
    demands: Demands


class PodObject(WireStruct, frozen=True):
    """A Pod on the wire."""

    MOST_BYTES = POD.object_bytes

    metadata: Owned = Owned()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def value(self) -> Pod:
        """Return the pod as a value for decisions.

        Raises:
            InvalidInput: a part is malformed; the error carries its path.
        """
        return self.sharing(self.shared())

    def shared(self) -> Shared:
        """Return the values that the pods of a template share.

        Raises:
            InvalidInput: a part is malformed; the error carries its path.
        """
        metadata = self.metadata
        return Shared(
            requests=request(self.spec, current(self.status, metadata.generation)),
            labels=_labels(bytes(metadata.labels)),
            made_by=_controller(bytes(metadata.owner_references)),
            demands=_demands(metadata.namespace, self.spec),
        )

    def sharing(self, shared: Shared, one: Callable[[str], str] = str) -> Pod:
        """Return the pod as a value for decisions, given the values of its template.

        Args:
            shared: values that the pods of the template share.
            one: returns one copy of equal names of namespaces and nodes. `sys.intern` is unfit:
                CPython 3.12 never frees its strings, and tenants choose these names.

        Raises:
            InvalidInput: a part is malformed; the error carries its path.
        """
        metadata, spec, status = self.metadata, self.spec, self.status
        demanded, claims = shared.demands, _claim_uses(metadata.name, bytes(spec.volumes))
        if len(claims) > POD.things:
            demanded, claims = BEYOND, ()
        annotations = metadata.annotations or {}
        if DECISIVE.isdisjoint(annotations):
            annotations = {}
        conditions = status.conditions or ()
        scheduled = _NO_CONDITION if spec.node_name else _condition(conditions, "PodScheduled")
        return Pod(
            name=PodName(one(metadata.namespace), metadata.name),
            uid=metadata.uid,
            revision=metadata.revision,
            created=metadata.created,
            requests=shared.requests,
            node=one(spec.node_name),
            priority=spec.priority or 0,
            finished=status.phase in FINISHED,
            nominated_node=status.nominated_node_name,
            claims=claimed_by(annotations) if annotations else frozenset(),
            has_preferences=demanded.has_preferences,
            labels=shared.labels,
            controller=shared.made_by[0],
            controller_version=shared.made_by[1],
            request=provisioned_by(annotations) if annotations else "",
            move_window=move_window(annotations) if annotations else "",
            surge=surged_by(annotations) if annotations else "",
            group=(spec.scheduling_group and spec.scheduling_group.pod_group_name) or "",
            constraints=demanded.constraints,
            volume_claims=claims,
            is_refused="reservation" in scheduled.message,  # Each of our refusals has the word.
            is_unschedulable=scheduled.reason == "Unschedulable",  # A gated pod has another reason.
            terminating=metadata.deletion_timestamp is not None,
            lingers=(metadata.deletion_grace_period_seconds or 0) > GRACE_S,
            is_mirror=MIRROR_ANNOTATION in annotations,
            has_resource_claims=bytes(spec.resource_claims) not in _NONE,
            health=health(status.phase, conditions),
        )


def _condition(conditions: Iterable[PodCondition], kind: str) -> PodCondition:
    return next((each for each in conditions if each.type == kind), _NO_CONDITION)


_LABELS: ByteCache[bytes, Labels] = ByteCache(16 * 2**20)
_CONTROLLERS: ByteCache[bytes, tuple[Controller, str]] = ByteCache(8 * 2**20)


def _labels(written: bytes) -> Labels:
    """Return ``metadata.labels``; pods with equal labels share one value."""
    if len(written) > POD.part_bytes:
        return UNREAD
    known = _LABELS.get(written)
    if known is None:
        read = decode_part(dict[str, str], written, "metadata.labels") or {}
        known = read if len(read) <= POD.labels else UNREAD
        _LABELS.put(written, known, reckoned(len(written)))
    return known


def controller_of(written: bytes) -> OwnerReference | None:
    """Return the owner that is the controller; None without one.

    Raises:
        InvalidInput: the owner references are malformed.
    """
    owners = decode_part(list[OwnerReference], written, "metadata.ownerReferences") or ()
    return next((owner for owner in owners if owner.controller), None)


def _controller(written: bytes) -> tuple[Controller, str]:
    """Return the controller of a pod, and its ``apiVersion``."""
    if len(written) > POD.part_bytes:
        return NO_CONTROLLER, ""
    known = _CONTROLLERS.get(written)
    if known is None:
        owner = controller_of(written)
        known = (NO_CONTROLLER, "")
        if owner:
            known = Controller(owner.kind, owner.name), owner.api_version
        _CONTROLLERS.put(written, known, reckoned(len(written)))
    return known


def _demands(namespace: str, spec: PodSpec) -> Demands:
    written = WrittenDemands(
        selector=bytes(spec.node_selector),
        affinity=bytes(spec.affinity),
        tolerations=bytes(spec.tolerations),
        spread=bytes(spec.topology_spread_constraints),
        ports=_host_ports(spec),
    )
    return pod_demands(written._replace(namespace=namespace) if written.affinity else written)


def _host_ports(spec: PodSpec) -> tuple[bytes, ...]:
    """Return the ports of the containers with host ports, as JSON."""
    found: tuple[bytes, ...] = ()
    for container in spec.containers or ():
        ports = bytes(container.ports)
        if b'"hostPort"' in ports:
            found += (ports,)
    for container in spec.init_containers or ():
        ports = bytes(container.ports)
        if b'"hostPort"' in ports and container.is_sidecar:
            found += (ports,)
    return found


def _claim_uses(pod: str, written: bytes) -> tuple[ClaimUse, ...]:
    if b'"persistentVolumeClaim"' not in written and b'"ephemeral"' not in written:
        return ()
    volumes = decode_part(list[_Volume], written, "spec.volumes") or ()
    return tuple(use for volume in volumes if (use := _claim_use(pod, volume)))


def _claim_use(pod: str, volume: _Volume) -> ClaimUse | None:
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name[: MOST_NAME + 1])
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod}-{volume.name}", is_ephemeral=True)
    return None
