"""Pods as a descheduler looks at them, from what their objects say.

Rules are those of Kubernetes' helpers as sigs.k8s.io/descheduler 0.36.0 calls them.
"""

from __future__ import annotations

from datetime import datetime
from sys import intern
from typing import Annotated, NamedTuple

import msgspec

from reserver.cluster.remembered import Remembered, reckoned
from reserver.rebalance.inventory import (
    EVICT,
    PREFER_NO_EVICTION,
    SOURCE,
    Amounts,
    Condition,
    ContainerState,
    ListedPod,
    Owner,
    Preference,
    SpreadRule,
)
from reserver.wire.k8s.constraints import (
    NodeSelector,
    NodeSelectorTerm,
    SpreadObject,
    node_terms,
    spread,
)
from reserver.wire.k8s.objects import WireStruct, decode, decode_part
from reserver.wire.k8s.pods import Owned, OwnerReference, PodObject, PodSpec, PodStatus, Shared
from reserver.wire.k8s.requests import (
    Actuated,
    ContainerSpec,
    Resources,
    is_resize_infeasible,
    nano,
    request,
    requesting,
)
from reserver.wire.k8s.requests import Amounts as WrittenAmounts
from reserver.wire.k8s.requests import Condition as WrittenCondition
from reserver.wire.limits import POD, Int32

_ABSENT = msgspec.Raw()
_NONE = frozenset({b"", b"null", b"[]"})
_READ_ANNOTATIONS = frozenset({EVICT, PREFER_NO_EVICTION, SOURCE})
_NO_ANNOTATIONS: dict[str, str] = {}

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_COMPUTE = ("cpu", "memory")


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
    """A Pod on the wire; what it has in common with others stays JSON."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Limited(Resources, frozen=True):
    limits: WrittenAmounts | None = None


class _LimitedContainer(ContainerSpec, frozen=True):
    image: str = ""
    resources: _Limited | None = None


class _LimitedSpec(PodSpec, frozen=True):
    containers: list[_LimitedContainer] | None = None  # type: ignore[assignment]  # frozen
    init_containers: list[_LimitedContainer] | None = None  # type: ignore[assignment]  # frozen


class _Templated(PodObject, frozen=True):
    """A Pod on the wire, with all that it has in common with others."""

    spec: _LimitedSpec = _LimitedSpec()


class _PreferredTerm(WireStruct, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class _NodeAffinity(WireStruct, frozen=True):
    preferred_during_scheduling_ignored_during_execution: list[_PreferredTerm] | None = None


class _Affinity(WireStruct, frozen=True):
    node_affinity: _NodeAffinity | None = None


class _Volume(WireStruct, frozen=True):
    """Of a volume, what a descheduler asks for."""

    class _Source(WireStruct, frozen=True):
        claim_name: str = ""

    host_path: _Source | None = None
    empty_dir: _Source | None = None
    persistent_volume_claim: _Source | None = None


class _Asked(NamedTuple):
    """What follows from the resources of the containers."""

    requests: Amounts
    named: frozenset[str]
    qos: str


class _Preferred(NamedTuple):
    """What follows from the affinity, besides what is required."""

    preferences: tuple[Preference, ...] = ()
    is_written: bool = False
    has_node_affinity: bool = False


class _Template(NamedTuple):
    """What pods of one template have in common."""

    shared: Shared
    asked: _Asked
    owners: tuple[Owner, ...]
    images: tuple[str, ...]
    preferred: _Preferred
    spreads: tuple[SpreadRule, ...]


_TEMPLATES: Remembered[bytes, _Template] = Remembered(64 * 2**20)
_BETWEEN, _END = b"\0", b"\1"
"""Stand in no JSON."""

_QUIET = ContainerState()
_NO_STATUS = Actuated()


def read_pod(raw: bytes | msgspec.Raw) -> ListedPod:
    """Return a Pod as a descheduler looks at it.

    Raises:
        InvalidInput: a part is malformed; the error carries its path.
    """
    written = decode(_Pod, raw)
    metadata, spec, status = written.metadata, written.spec, written.status
    template = _template(written, raw)
    asked, preferred = template.asked, template.preferred
    volumes = _volumes(bytes(spec.volumes))
    return ListedPod(
        pod=written.sharing(template.shared, intern),
        created=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        started=status.start_time.timestamp() if status.start_time else None,
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
        )
        if volumes
        else (),
        has_local_storage=any(volume.host_path or volume.empty_dir for volume in volumes),
        has_resource_claims=bytes(spec.resource_claims) not in _NONE,
        containers=_states(status.container_statuses),
        init_containers=_states(status.init_container_statuses),
        ephemeral_containers=_states(status.ephemeral_container_statuses),
        conditions=tuple(
            [
                Condition(
                    intern(each.type),
                    intern(each.status),
                    intern(each.reason),
                    since.timestamp() if (since := each.last_transition_time) else None,
                )
                for each in status.conditions or ()
            ]
        ),
    )


def _template(written: _Pod, raw: bytes | msgspec.Raw) -> _Template:
    """Return what a pod has in common with others: looked up at once, by all that it follows from.

    Most pods of a cluster come from few templates, and parsing takes most of the time.
    """
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
    key = _BETWEEN.join(parts)
    known = _TEMPLATES.get(key)
    if known is None:
        whole = decode(_Templated, raw)
        known = _Template(
            shared=whole.shared(),
            asked=_asked(whole),
            owners=_owners(bytes(metadata.owner_references)),
            images=tuple(sorted(container.image for container in whole.spec.containers or ())),
            preferred=_preferred(bytes(spec.affinity)),
            spreads=_spreads(bytes(spec.topology_spread_constraints)),
        )
        _TEMPLATES.put(key, known, reckoned(len(key)))
    return known


_ASKED: Remembered[bytes, _Asked] = Remembered(16 * 2**20)


def _asked(whole: _Templated) -> _Asked:
    spec = whole.spec
    key = requesting(spec, whole.status)
    known = _ASKED.get(key)
    if known is None:
        containers = (*(spec.containers or ()), *(spec.init_containers or ()))
        asked = [each.resources.requests or {} for each in containers if each.resources]
        named = frozenset().union(*asked)
        both = {**((spec.resources and spec.resources.requests) or {}), **(spec.overhead or {})}
        zeros = dict.fromkeys((*named, *both), 0)
        known = _Asked(zeros | dict(request(spec, _NO_STATUS)), named, _qos(containers))
        _ASKED.put(key, known, reckoned(len(key)))
    return known


def _qos(containers: tuple[_LimitedContainer, ...]) -> str:
    """Return the QoS class that upstream computes where the status has none (`GetPodQOS`)."""
    requests, limits = dict[str, int](), dict[str, int]()
    is_guaranteed = True
    for container in containers:
        resources = container.resources or _Limited()
        _add(requests, nano(resources.requests, "requests"))
        limited = nano(resources.limits, "limits")
        _add(limits, limited)
        is_guaranteed &= all(limited.get(name, 0) > 0 for name in _COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(totals: dict[str, int], amounts: Amounts) -> None:
    for name in _COMPUTE:
        if amounts.get(name, 0) > 0:
            totals[name] = totals.get(name, 0) + amounts[name]


def _owners(written: bytes) -> tuple[Owner, ...]:
    if len(written) > POD.part_bytes:
        return ()
    owners = decode_part(list[OwnerReference], written, "metadata.ownerReferences") or ()
    return tuple(
        Owner(intern(owner.kind), owner.name, owner.uid, owner.controller is True)
        for owner in owners
    )


def _annotations(written: dict[str, str] | None) -> dict[str, str]:
    if not written or _READ_ANNOTATIONS.isdisjoint(written):
        return _NO_ANNOTATIONS
    return {key: value for key, value in written.items() if key in _READ_ANNOTATIONS}


def _preferred(written: bytes) -> _Preferred:
    if b'"nodeAffinity"' not in written or len(written) > POD.part_bytes:
        return _Preferred()
    affinity = decode_part(_Affinity, written, "spec.affinity") or _Affinity()
    nodes = affinity.node_affinity or _NodeAffinity()
    terms = nodes.preferred_during_scheduling_ignored_during_execution or []
    return _Preferred(
        tuple(
            Preference(each.weight, term)
            for each in terms
            for term in node_terms(NodeSelector([each.preference]))
        ),
        is_written=bool(terms),
        has_node_affinity=affinity.node_affinity is not None,
    )


def _spreads(written: bytes) -> tuple[SpreadRule, ...]:
    if len(written) > POD.part_bytes:
        return ()
    rules = decode_part(list[SpreadObject], written, "spec.topologySpreadConstraints") or ()
    return tuple(SpreadRule(spread(rule), rule.when_unsatisfiable) for rule in rules)


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
