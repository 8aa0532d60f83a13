"""Reads the scheduling constraints of pods and volumes.

A selector that the API server would not have let in means nothing here: it matches nothing, as in
kube-scheduler, and the rest of the pod is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from reserver.cluster.constraints import (
    ANY_IP,
    TOO_MANY,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Spread,
    Toleration,
)
from reserver.cluster.labels import NOTHING, Requirement, Selector, equals, integer
from reserver.cluster.remembered import Remembered, reckoned
from reserver.wire.k8s.objects import WireStruct, decode_part
from reserver.wire.limits import POD, Int32, Int64

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SET_OPERATORS = frozenset({"In", "NotIn"})
_KEY_OPERATORS = frozenset({"Exists", "DoesNotExist"})
_NUMBER_OPERATORS = frozenset({"Gt", "Lt"})


class Expression(WireStruct, frozen=True):
    """One term of a selector; the same for labels of pods and of nodes."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(WireStruct, frozen=True):
    """A LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class NodeSelectorTerm(WireStruct, frozen=True):
    """One alternative of a NodeSelector."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(WireStruct, frozen=True):
    """Alternatives; a node must meet one."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(WireStruct, frozen=True):
    """What a pod demands of the labels of its node."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[msgspec.Raw] | None = None


class PodAffinityTerm(WireStruct, frozen=True):
    """One term of a pod affinity or anti-affinity."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None


class PodAffinity(WireStruct, frozen=True):
    """What a pod demands of the pods near it."""

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
    toleration_seconds: Int64 | None = None  # Matters only for pods that are already on a node.


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
    """The requirements of a pod, and whether it has preferences."""

    constraints: Constraints
    has_preferences: bool


class WrittenDemands(NamedTuple):
    """The demands of a pod as JSON; an absent part is empty.

    Attributes:
        namespace: of the pod, where it has an affinity; else empty.
        selector: ``spec.nodeSelector``.
        affinity: ``spec.affinity``.
        tolerations: ``spec.tolerations``.
        spread: ``spec.topologySpreadConstraints``.
        ports: those of the containers with host ports.
    """

    namespace: str = ""
    selector: bytes = b""
    affinity: bytes = b""
    tolerations: bytes = b""
    spread: bytes = b""
    ports: tuple[bytes, ...] = ()

    @property
    def length(self) -> int:
        """How long it is, in bytes."""
        parts = (self.selector, self.affinity, self.tolerations, self.spread, *self.ports)
        return sum(map(len, parts))


BEYOND = Demands(TOO_MANY, has_preferences=True)
"""Stands for demands that are too many to read."""


_KNOWN: Remembered[WrittenDemands, Demands] = Remembered(16 * 2**20)


def pod_demands(written: WrittenDemands) -> Demands:
    """Return what a pod demands, `TOO_MANY` for too much; one value for all pods of a template.

    Raises:
        InvalidInput: a part is not of the shape that Kubernetes defines.
    """
    length = written.length
    if length > POD.part_bytes:
        return BEYOND
    known = _KNOWN.get(written)
    if known is None:
        found = demands(written)
        known = found if _are_few(found.constraints) else BEYOND
        _KNOWN.put(written, known, reckoned(length))
    return known


def _are_few(constraints: Constraints) -> bool:
    things = max(len(constraints.tolerations), len(constraints.host_ports))
    are_few = constraints.terms <= POD.terms and constraints.labels <= POD.asked
    return are_few and things <= POD.things


def demands(written: WrittenDemands) -> Demands:
    """Return what a pod demands, without a bound.

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
        node_selector=equals(selector),
        node_terms=_required_node_terms(affinity.node_affinity),
        affinity=_pod_terms(near, namespace),
        anti_affinity=_pod_terms(apart, namespace),
        spread=tuple(spread(c) for c in rules if c.when_unsatisfiable == "DoNotSchedule"),
        host_ports=_host_ports(written.ports),
    )
    has_preferences = any(c.when_unsatisfiable == "ScheduleAnyway" for c in rules) or any(
        part and part.preferred_during_scheduling_ignored_during_execution for part in parts
    )
    return Demands(constraints, has_preferences)


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Return the alternatives of a node selector, without empty ones: no node meets them."""
    return tuple(
        NodeTerm(
            labels=_selector(term.match_expressions or (), requirement),
            fields=_selector(term.match_fields or (), field_requirement),
        )
        for term in selector.node_selector_terms or ()
        if term.match_expressions or term.match_fields
    )


def _required_node_terms(affinity: NodeAffinity | None) -> tuple[NodeTerm, ...] | None:
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return node_terms(required) if required else None


def _pod_terms(affinity: PodAffinity | None, namespace: str) -> tuple[PodTerm, ...]:
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return tuple(_pod_term(term, namespace) for term in required or ())


def _pod_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """Return a term of pod affinity; without any namespaces it is about the pod's own.

    Its matchLabelKeys are in the selector already: the API server puts them there.
    """
    is_local = not term.namespaces and term.namespace_selector is None
    return PodTerm(
        selector=label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespaces=frozenset({namespace} if is_local else term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
    )


def spread(constraint: SpreadObject) -> Spread:
    """Return a topology spread constraint, whatever it says when it cannot be met."""
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


def label_selector(selector: LabelSelector | None) -> Selector:
    """Return a label selector; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    expressions = _selector(selector.match_expressions or (), requirement)
    labels = equals(selector.match_labels or {})
    return Selector(labels.requirements + expressions.requirements)


def _selector(
    expressions: Iterable[Expression], read: Callable[[Expression], Requirement | None]
) -> Selector:
    requirements = tuple(map(read, expressions))
    readable = tuple(filter(None, requirements))
    return Selector(readable) if len(readable) == len(requirements) else NOTHING


def requirement(expression: Expression) -> Requirement | None:
    """Return one term; None if it is malformed (`NewRequirement` in labels/selector.go)."""
    operator, values = expression.operator, frozenset(expression.values or ())
    if not all(map(_LABEL_VALUE.fullmatch, values)):
        return None
    is_well_formed = (
        (operator in _SET_OPERATORS and values)
        or (operator in _KEY_OPERATORS and not values)
        or (operator in _NUMBER_OPERATORS and _is_one_integer(expression.values or ()))
    )
    return Requirement(expression.key, operator, values) if is_well_formed else None


def _is_one_integer(values: Sequence[str]) -> bool:
    return len(values) == 1 and integer(values[0]) is not None


def field_requirement(expression: Expression) -> Requirement | None:
    """Return one term on a field: it has one value, and is ``In`` or ``NotIn``."""
    values = frozenset(expression.values or ())
    if expression.operator not in _SET_OPERATORS or len(expression.values or ()) != 1:
        return None
    return Requirement(expression.key, expression.operator, values)
