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
from reserver.wire.k8s.objects import WireStruct, decode, decode_part, encode
from reserver.wire.k8s.pods import OwnerReference, PodObject
from reserver.wire.k8s.requests import Actuated, ContainerSpec, Requesting, Resources, nano, request
from reserver.wire.k8s.requests import Amounts as WrittenAmounts
from reserver.wire.limits import POD, Int32

_ABSENT = msgspec.Raw()
_NONE = frozenset({b"", b"null", b"[]"})
_READ_ANNOTATIONS = (EVICT, PREFER_NO_EVICTION, SOURCE)
_EVICTION, _SOURCE = b"descheduler.alpha.kubernetes.io/", SOURCE.encode()
"""What the names of those have in common."""

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_COMPUTE = ("cpu", "memory")


class _Metadata(WireStruct, frozen=True):
    creation_timestamp: _Moment | None = None
    annotations: msgspec.Raw = _ABSENT
    owner_references: msgspec.Raw = _ABSENT


class _Limited(Resources, frozen=True):
    limits: WrittenAmounts | None = None


class _Container(ContainerSpec, frozen=True):
    image: str = ""
    resources: _Limited | None = None


class _Spec(Requesting, frozen=True):
    containers: list[_Container] | None = None  # type: ignore[assignment]  # frozen
    init_containers: list[_Container] | None = None  # type: ignore[assignment]  # frozen
    priority: Int32 | None = None
    node_selector: msgspec.Raw = _ABSENT
    affinity: msgspec.Raw = _ABSENT
    topology_spread_constraints: msgspec.Raw = _ABSENT
    volumes: msgspec.Raw = _ABSENT
    resource_claims: msgspec.Raw = _ABSENT


class _Reason(WireStruct, frozen=True):
    reason: str = ""
    exit_code: Int32 = 0


class _State(WireStruct, frozen=True):
    waiting: _Reason | None = None
    terminated: _Reason | None = None


class _ContainerStatus(WireStruct, frozen=True):
    restart_count: Int32 = 0
    state: _State = _State()


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: _Moment | None = None


class _Status(WireStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    start_time: _Moment | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    ephemeral_container_statuses: list[_ContainerStatus] | None = None


class _Listed(WireStruct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


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


def read_pod(raw: bytes | msgspec.Raw) -> ListedPod:
    """Return a Pod as a descheduler looks at it.

    Raises:
        InvalidInput: a part is malformed; the error carries its path.
    """
    pod, listed = decode(PodObject, raw).value(), decode(_Listed, raw)
    metadata, spec, status = listed.metadata, listed.spec, listed.status
    asked, preferred = _asked(spec), _preferred(bytes(spec.affinity))
    volumes = _volumes(bytes(spec.volumes))
    return ListedPod(
        pod=pod,
        created=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        started=status.start_time.timestamp() if status.start_time else None,
        phase=intern(status.phase),
        reason=intern(status.reason),
        priority=spec.priority,
        qos=intern(status.qos_class) or asked.qos,
        owners=_owners(bytes(metadata.owner_references)),
        annotations=_annotations(bytes(metadata.annotations)),
        images=_images(spec.containers or ()),
        requests=asked.requests,
        named=asked.named,
        preferences=preferred.preferences,
        has_preferences=preferred.is_written,
        has_node_rules=bytes(spec.node_selector) not in _NONE or preferred.has_node_affinity,
        spreads=_spreads(bytes(spec.topology_spread_constraints)),
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
        conditions=tuple(map(_condition, status.conditions or ())),
    )


_ASKED: Remembered[bytes, _Asked] = Remembered(16 * 2**20)
_IMAGES: Remembered[tuple[str, ...], tuple[str, ...]] = Remembered(8 * 2**20)
_OWNERS: Remembered[bytes, tuple[Owner, ...]] = Remembered(8 * 2**20)
_PREFERRED: Remembered[bytes, _Preferred] = Remembered(8 * 2**20)
_SPREADS: Remembered[bytes, tuple[SpreadRule, ...]] = Remembered(8 * 2**20)

_NO_PREFERENCES = _Preferred()
_QUIET = ContainerState()
_NO_STATUS = Actuated()


def _asked(spec: _Spec) -> _Asked:
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    roles = [(each.name, each.resources, each.restart_policy) for each in containers]
    key = encode((len(spec.containers or ()), roles, spec.resources, spec.overhead))
    known = _ASKED.get(key)
    if known is None:
        asked = [each.resources.requests or {} for each in containers if each.resources]
        named = frozenset().union(*asked)
        whole = {**((spec.resources and spec.resources.requests) or {}), **(spec.overhead or {})}
        zeros = dict.fromkeys((*named, *whole), 0)
        known = _Asked(zeros | dict(request(spec, _NO_STATUS)), named, _qos(containers))
        _ASKED.put(key, known, reckoned(len(key)))
    return known


def _qos(containers: tuple[_Container, ...]) -> str:
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


def _images(containers: list[_Container] | tuple[()]) -> tuple[str, ...]:
    images = tuple(sorted(container.image for container in containers))
    known = _IMAGES.get(images)
    if known is None:
        known = images
        _IMAGES.put(images, known, reckoned(sum(map(len, images))))
    return known


def _owners(written: bytes) -> tuple[Owner, ...]:
    if not written or len(written) > POD.part_bytes:
        return ()
    known = _OWNERS.get(written)
    if known is None:
        owners = decode_part(list[OwnerReference], written, "metadata.ownerReferences") or ()
        known = tuple(
            Owner(intern(owner.kind), owner.name, owner.uid, owner.controller is True)
            for owner in owners
        )
        _OWNERS.put(written, known, reckoned(len(written)))
    return known


def _annotations(written: bytes) -> dict[str, str]:
    if _EVICTION not in written and _SOURCE not in written:
        return {}
    all_of_them = decode_part(dict[str, str], written, "metadata.annotations") or {}
    return {key: all_of_them[key] for key in _READ_ANNOTATIONS if key in all_of_them}


def _preferred(written: bytes) -> _Preferred:
    if b'"nodeAffinity"' not in written or len(written) > POD.part_bytes:
        return _NO_PREFERENCES
    known = _PREFERRED.get(written)
    if known is None:
        affinity = decode_part(_Affinity, written, "spec.affinity") or _Affinity()
        nodes = affinity.node_affinity or _NodeAffinity()
        terms = nodes.preferred_during_scheduling_ignored_during_execution or []
        known = _Preferred(
            tuple(
                Preference(each.weight, term)
                for each in terms
                for term in node_terms(NodeSelector([each.preference]))
            ),
            is_written=bool(terms),
            has_node_affinity=affinity.node_affinity is not None,
        )
        _PREFERRED.put(written, known, reckoned(len(written)))
    return known


def _spreads(written: bytes) -> tuple[SpreadRule, ...]:
    if not written or len(written) > POD.part_bytes:
        return ()
    known = _SPREADS.get(written)
    if known is None:
        rules = decode_part(list[SpreadObject], written, "spec.topologySpreadConstraints") or ()
        known = tuple(SpreadRule(spread(rule), rule.when_unsatisfiable) for rule in rules)
        _SPREADS.put(written, known, reckoned(len(written)))
    return known


def _volumes(written: bytes) -> list[_Volume]:
    is_local = b'"hostPath"' in written or b'"emptyDir"' in written
    if not is_local and b'"persistentVolumeClaim"' not in written:
        return []
    return decode_part(list[_Volume], written, "spec.volumes") or []


def _states(statuses: list[_ContainerStatus] | None) -> tuple[ContainerState, ...]:
    return tuple(map(_state, statuses or ()))


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


def _condition(condition: _Condition) -> Condition:
    moment = condition.last_transition_time
    return Condition(
        intern(condition.type),
        intern(condition.status),
        intern(condition.reason),
        None if moment is None else moment.timestamp(),
    )
