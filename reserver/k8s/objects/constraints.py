"""Reads the scheduling constraints of pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import msgspec

from reserver.cluster.byte_cache import ByteCache, reckoned
from reserver.cluster.constraints import (
    ANY_IP,
    LENT,
    TOO_MANY,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Spread,
    Toleration,
)
from reserver.cluster.labels import EVERYTHING, NOTHING, equals
from reserver.k8s.objects.limits import POD, Int32, Int64
from reserver.k8s.objects.objects import WireStruct, decode_part
from reserver.k8s.objects.selectors import LabelSelector, NodeSelector, label_selector, node_terms


class NodeAffinity(WireStruct, frozen=True):
    """``spec.affinity.nodeAffinity`` of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[msgspec.Raw] | None = None


class PodAffinityTerm(WireStruct, frozen=True):
    """One term of a pod affinity or anti-affinity."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None


class PodAffinity(WireStruct, frozen=True):
    """``spec.affinity.podAffinity`` or ``podAntiAffinity`` of a pod."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[msgspec.Raw] | None = None


class Affinity(WireStruct, frozen=True):
    """``spec.affinity`` of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TolerationObject(WireStruct, frozen=True):
    """One of ``spec.tolerations`` of a pod."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None  # Matters only for pods that are on a node already.


class SpreadObject(WireStruct, frozen=True):
    """One of ``spec.topologySpreadConstraints`` of a pod."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class _Port(WireStruct, frozen=True):
    host_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class Demands(NamedTuple):
    """The constraints of a pod, and whether it has preferences."""

    constraints: Constraints
    has_preferences: bool


class WrittenDemands(NamedTuple):
    """The demands of a pod as JSON; an absent part is empty.

    Attributes:
        namespace: namespace of the pod, if it has an affinity; else empty.
        selector: ``spec.nodeSelector``.
        affinity: ``spec.affinity``.
        tolerations: ``spec.tolerations``.
        spread: ``spec.topologySpreadConstraints``.
        ports: ``ports`` of each container with host ports.
    """

    namespace: str = ""
    selector: bytes = b""
    affinity: bytes = b""
    tolerations: bytes = b""
    spread: bytes = b""
    ports: tuple[bytes, ...] = ()

    @property
    def length(self) -> int:
        """Total length, in bytes."""
        parts = (self.selector, self.affinity, self.tolerations, self.spread, *self.ports)
        return sum(map(len, parts))


BEYOND = Demands(TOO_MANY, has_preferences=True)
"""Stands for demands that are too many to read."""

_BEYOND_BORROWER = Demands(replace(TOO_MANY, tolerates_recall=True), has_preferences=True)


_KNOWN: ByteCache[WrittenDemands, Demands] = ByteCache(16 * 2**20)


def pod_demands(written: WrittenDemands) -> Demands:
    """Return the demands of a pod, `BEYOND` for too many; equal demands share one value.

    Raises:
        InvalidInput: a part is not of the shape that Kubernetes defines.
    """
    length = written.length
    if length > POD.part_bytes:
        return _beyond(written)
    known = _KNOWN.get(written)
    if known is None:
        found = demands(written)
        known = found if _are_few(found.constraints) else _beyond(written)
        _KNOWN.put(written, known, reckoned(length))
    return known


def _beyond(written: WrittenDemands) -> Demands:
    """Return the placeholder for too many demands; a borrower stays a borrower."""
    return _BEYOND_BORROWER if LENT.encode() in written.tolerations else BEYOND


def _are_few(constraints: Constraints) -> bool:
    things = max(len(constraints.tolerations), len(constraints.host_ports))
    terms, labels = sizes(constraints)
    return terms <= POD.terms and labels <= POD.asked and things <= POD.things


def sizes(constraints: Constraints) -> tuple[int, int]:
    """Return the number of alternatives, terms and spread constraints, and of required labels."""
    alternatives, spread = constraints.node_terms or (), constraints.spread
    terms = (*constraints.affinity, *constraints.anti_affinity)
    selectors = [constraints.node_selector, *(each.selector for each in spread)]
    selectors += (part for each in alternatives for part in (each.labels, each.fields))
    selectors += (part for each in terms for part in (each.selector, each.namespace_selector))
    labels = sum(len(each.requirements) for each in selectors if each != NOTHING)
    labels += sum(len(each.match_label_keys) for each in spread)
    return len(alternatives) + len(terms) + len(spread), labels


def demands(written: WrittenDemands) -> Demands:
    """Return the demands of a pod, however many there are.

    Raises:
        InvalidInput: a part is not of the shape that Kubernetes defines.
    """
    selector = decode_part(dict[str, str], written.selector, "spec.nodeSelector") or {}
    affinity = decode_part(Affinity, written.affinity, "spec.affinity") or Affinity()
    tolerations = decode_part(list[TolerationObject], written.tolerations, "spec.tolerations") or []
    rules = decode_part(list[SpreadObject], written.spread, "spec.topologySpreadConstraints") or []
    namespace = written.namespace
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    parts = (affinity.node_affinity, near, apart)
    constraints = Constraints(
        tolerations=tuple(map(_toleration, tolerations)),
        node_selector=equals(selector) if selector else EVERYTHING,
        node_terms=_required_node_terms(affinity.node_affinity),
        affinity=_pod_terms(near, namespace),
        anti_affinity=_pod_terms(apart, namespace),
        spread=tuple(spread(c) for c in rules if c.when_unsatisfiable == "DoNotSchedule"),
        host_ports=_host_ports(written.ports),
        tolerates_recall=any(each.key == LENT for each in tolerations),
    )
    has_preferences = any(c.when_unsatisfiable == "ScheduleAnyway" for c in rules) or any(
        part and part.preferred_during_scheduling_ignored_during_execution for part in parts
    )
    return Demands(constraints, has_preferences)


def _required_node_terms(affinity: NodeAffinity | None) -> tuple[NodeTerm, ...] | None:
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return node_terms(required) if required else None


def _pod_terms(affinity: PodAffinity | None, namespace: str) -> tuple[PodTerm, ...]:
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return tuple(_pod_term(term, namespace) for term in required or ())


def _pod_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """Return a term of pod affinity; without namespaces it selects pods of the pod's own namespace.

    Its matchLabelKeys are in the selector already: the API server merges them into it.
    """
    is_local = not term.namespaces and term.namespace_selector is None
    return PodTerm(
        selector=label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespaces=frozenset({namespace} if is_local else term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
    )


def spread(constraint: SpreadObject) -> Spread:
    """Return a topology spread constraint, with any ``whenUnsatisfiable``."""
    return Spread(
        topology_key=constraint.topology_key,
        selector=label_selector(constraint.label_selector),
        match_label_keys=tuple(constraint.match_label_keys or ()),
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _toleration(toleration: TolerationObject) -> Toleration:
    operator = toleration.operator or "Equal"
    return Toleration(toleration.key, operator, toleration.value, toleration.effect)


def _host_ports(written: Iterable[bytes]) -> tuple[HostPort, ...]:
    ports = (
        port
        for container in written
        for port in decode_part(list[_Port], container, "spec.containers.ports") or ()
    )
    return tuple(
        HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for port in ports
        if port.host_port > 0
    )
