"""Reads Pod objects into the values of a descheduler.

The rules follow the Kubernetes helpers that sigs.k8s.io/descheduler 0.36.0 calls.
"""

from __future__ import annotations

from datetime import datetime
from sys import intern
from typing import Annotated

import msgspec

from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import WireStruct, decode, decode_part
from reserver.k8s.objects.pod_annotations import COST_ANNOTATION
from reserver.k8s.objects.pods import Owned, PodObject, PodSpec, PodStatus
from reserver.k8s.objects.requests import PodCondition as WrittenCondition
from reserver.k8s.objects.requests import is_resize_infeasible
from reserver.rebalance.cluster_state import (
    EVICT,
    EVICTION_IN_PROGRESS,
    PREFER_NO_EVICTION,
    SOURCE,
    ContainerState,
    ListedCondition,
    ListedPod,
)
from reserver.rebalance.pod_template import template_of

_ABSENT = msgspec.Raw()
_NONE = frozenset({b"", b"null", b"[]"})
_READ_ANNOTATIONS = frozenset(
    {COST_ANNOTATION, EVICT, EVICTION_IN_PROGRESS, PREFER_NO_EVICTION, SOURCE}
)
_NO_ANNOTATIONS: dict[str, str] = {}

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Metadata(Owned, frozen=True):
    creation_timestamp: _Moment | None = None  # type: ignore[assignment]  # frozen

    @property
    def created(self) -> str:
        """Nothing: who reads it here reads the moment."""
        return ""


class _Container(WireStruct, frozen=True):
    name: msgspec.Raw = _ABSENT
    image: msgspec.Raw = _ABSENT
    restart_policy: msgspec.Raw = _ABSENT
    resources: msgspec.Raw = _ABSENT
    ports: msgspec.Raw = _ABSENT


class _Spec(PodSpec, frozen=True):
    containers: list[_Container] | None = None  # type: ignore[assignment]  # frozen
    init_containers: list[_Container] | None = None  # type: ignore[assignment]  # frozen
    resources: msgspec.Raw = _ABSENT  # type: ignore[assignment]  # frozen
    overhead: msgspec.Raw = _ABSENT  # type: ignore[assignment]  # frozen


class _Reason(WireStruct, frozen=True):
    reason: str = ""
    exit_code: Int32 = 0


class _State(WireStruct, frozen=True):
    waiting: _Reason | None = None
    terminated: _Reason | None = None


class _ContainerStatus(WireStruct, frozen=True):
    name: msgspec.Raw = _ABSENT
    allocated_resources: msgspec.Raw = _ABSENT
    resources: msgspec.Raw = _ABSENT
    restart_count: Int32 = 0
    state: _State = _State()


class _Condition(WrittenCondition, frozen=True):
    status: str = ""
    last_transition_time: _Moment | None = None


class _Status(PodStatus, frozen=True):
    reason: str = ""
    qos_class: str = ""
    start_time: _Moment | None = None
    conditions: list[_Condition] | None = None  # type: ignore[assignment]  # frozen
    container_statuses: list[_ContainerStatus] | None = None  # type: ignore[assignment]  # frozen
    init_container_statuses: list[_ContainerStatus] | None = None  # type: ignore[assignment]  # frozen
    ephemeral_container_statuses: list[_ContainerStatus] | None = None
    allocated_resources: msgspec.Raw = _ABSENT  # type: ignore[assignment]  # frozen
    resources: msgspec.Raw = _ABSENT  # type: ignore[assignment]  # frozen


class _Pod(PodObject, frozen=True):
    """A Pod on the wire; the parts that pods of one template share stay JSON."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Volume(WireStruct, frozen=True):
    """The fields of a volume that a descheduler reads."""

    class _Source(WireStruct, frozen=True):
        claim_name: str = ""

    host_path: _Source | None = None
    empty_dir: _Source | None = None
    persistent_volume_claim: _Source | None = None


_BETWEEN, _END = b"\0", b"\1"
"""Stand in no JSON."""

_QUIET = ContainerState()


def read_pod(raw: bytes | msgspec.Raw) -> ListedPod:
    """Return a Pod as a descheduler looks at it.

    Raises:
        InvalidInput: a part is malformed; the error carries its path.
    """
    written = decode(_Pod, raw)
    metadata, spec, status = written.metadata, written.spec, written.status
    template = template_of(_key(written), raw)
    asked, preferred = template.asked, template.preferred
    volumes = _volumes(bytes(spec.volumes))
    return ListedPod(
        pod=written.sharing(template.shared, intern),
        created=_seconds(metadata.creation_timestamp) or 0.0,
        started=_seconds(status.start_time),
        phase=intern(status.phase),
        reason=intern(status.reason),
        priority=spec.priority,
        qos=intern(status.qos_class) or asked.qos,
        owners=template.owners,
        annotations=_annotations(metadata.annotations),
        images=template.images,
        requests=asked.requests,
        named=asked.named,
        preferences=preferred.preferences,
        has_preferences=preferred.is_written,
        has_node_rules=bytes(spec.node_selector) not in _NONE or preferred.has_node_affinity,
        spreads=template.spreads,
        claims=tuple(
            volume.persistent_volume_claim.claim_name
            for volume in volumes
            if volume.persistent_volume_claim
        ),
        has_local_storage=any(volume.host_path or volume.empty_dir for volume in volumes),
        has_resource_claims=bytes(spec.resource_claims) not in _NONE,
        containers=_states(status.container_statuses),
        init_containers=_states(status.init_container_statuses),
        ephemeral_containers=_states(status.ephemeral_container_statuses),
        conditions=tuple([_condition(each) for each in status.conditions or ()]),
    )


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


def _key(written: _Pod) -> bytes:
    """Return all that a pod's template follows from."""
    metadata, spec, status = written.metadata, written.spec, written.status
    parts: list[bytes | msgspec.Raw] = [
        metadata.namespace.encode(),
        metadata.labels,
        metadata.owner_references,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.resources,
        spec.overhead,
        status.allocated_resources,
        status.resources,
        status.node_allocatable_resource_claim_statuses,
        b"resize is infeasible" if is_resize_infeasible(status.conditions or ()) else b"",
    ]
    for containers in (spec.containers or (), spec.init_containers or ()):
        for each in containers:
            parts += (each.name, each.image, each.restart_policy, each.resources, each.ports)
        parts.append(_END)
    for statuses in (status.container_statuses or (), status.init_container_statuses or ()):
        for said in statuses:
            parts += (said.name, said.allocated_resources, said.resources)
        parts.append(_END)
    return _BETWEEN.join(parts)


def _annotations(written: dict[str, str] | None) -> dict[str, str]:
    if not written or _READ_ANNOTATIONS.isdisjoint(written):
        return _NO_ANNOTATIONS
    return {key: value for key, value in written.items() if key in _READ_ANNOTATIONS}


def _volumes(written: bytes) -> list[_Volume]:
    is_local = b'"hostPath"' in written or b'"emptyDir"' in written
    if not is_local and b'"persistentVolumeClaim"' not in written:
        return []
    return decode_part(list[_Volume], written, "spec.volumes") or []


def _states(statuses: list[_ContainerStatus] | None) -> tuple[ContainerState, ...]:
    return tuple([_state(status) for status in statuses]) if statuses else ()


def _state(status: _ContainerStatus) -> ContainerState:
    waiting, ended = status.state.waiting, status.state.terminated
    if not status.restart_count and waiting is ended is None:
        return _QUIET
    return ContainerState(
        status.restart_count,
        None if waiting is None else intern(waiting.reason),
        None if ended is None else intern(ended.reason),
        None if ended is None else ended.exit_code,
    )


def _condition(said: _Condition) -> ListedCondition:
    since = _seconds(said.last_transition_time)
    return ListedCondition(intern(said.type), intern(said.status), intern(said.reason), since)
