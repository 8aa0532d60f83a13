"""The values that pods of one template share.

Most pods of a cluster come from few templates, and parsing takes most of the time, so each template
is read once.
"""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

import msgspec

from reserver.cluster.byte_cache import ByteCache, reckoned
from reserver.k8s.objects.constraints import SpreadObject, spread
from reserver.k8s.objects.limits import POD, Int32
from reserver.k8s.objects.objects import WireStruct, decode, decode_part
from reserver.k8s.objects.pods import OwnerReference, PodObject, PodSpec, Shared
from reserver.k8s.objects.requests import (
    Actuated,
    ContainerSpec,
    Resources,
    nano,
    request,
    requesting,
)
from reserver.k8s.objects.requests import Amounts as WrittenAmounts
from reserver.k8s.objects.selectors import NodeSelector, NodeSelectorTerm, node_terms
from reserver.rebalance.cluster_state import Amounts, Owner, Preference, SpreadRule

_COMPUTE = ("cpu", "memory")


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


class _Asked(NamedTuple):
    """The values that follow from the resources of the containers."""

    requests: Amounts
    named: frozenset[str]
    qos: str


class _Preferred(NamedTuple):
    """The values of the affinity that are preferences."""

    preferences: tuple[Preference, ...] = ()
    is_written: bool = False
    has_node_affinity: bool = False


class Template(NamedTuple):
    """The values that pods of one template share.

    Attributes:
        shared: for placing them.
        asked: by their containers.
        owners: ``metadata.ownerReferences``.
        images: of their containers, sorted.
        preferred: by their affinity.
        spreads: topology spread constraints of both kinds.
    """

    shared: Shared
    asked: _Asked
    owners: tuple[Owner, ...]
    images: tuple[str, ...]
    preferred: _Preferred
    spreads: tuple[SpreadRule, ...]


_TEMPLATES: ByteCache[bytes, Template] = ByteCache(64 * 2**20)
_NO_STATUS = Actuated()


def template_of(key: bytes, raw: bytes | msgspec.Raw) -> Template:
    """Return the template of a pod.

    Args:
        key: all parts of the pod that the template depends on.
        raw: the pod.

    Raises:
        InvalidInput: a part is malformed; the error carries its path.
    """
    known = _TEMPLATES.get(key)
    if known is None:
        whole = decode(_Templated, raw)
        spec = whole.spec
        known = Template(
            shared=whole.shared(),
            asked=_asked(whole),
            owners=_owners(bytes(whole.metadata.owner_references)),
            images=tuple(sorted(container.image for container in spec.containers or ())),
            preferred=_preferred(bytes(spec.affinity)),
            spreads=_spreads(bytes(spec.topology_spread_constraints)),
        )
        _TEMPLATES.put(key, known, reckoned(len(key)))
    return known


_ASKED: ByteCache[bytes, _Asked] = ByteCache(16 * 2**20)


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
