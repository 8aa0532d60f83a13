"""A pod's scheduling constraints, as the placement of the Reservation that holds its seat.

Only required constraints are kept: preferences have no effect on a hold, and `placement_codec`
refuses unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.constraints import PodAffinityTerm, SpreadObject
from reserver.k8s.objects.objects import WireStruct, decode

Placement = dict[str, Any]
_Part = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME_FIELD = "metadata.name"
_TERM_FIELDS = {each.encode_name for each in msgspec.structs.fields(PodAffinityTerm)}
_SPREAD_FIELDS = {each.encode_name for each in msgspec.structs.fields(SpreadObject)}
_TOLERATION_FIELDS = ("key", "operator", "value", "effect")


class _NodeTerm(WireStruct, frozen=True):
    match_expressions: list[dict[str, Any]] | None = None
    match_fields: list[dict[str, Any]] | None = None


class _NodeTerms(WireStruct, frozen=True):
    node_selector_terms: list[_NodeTerm] | None = None


class _NodeAffinity(WireStruct, frozen=True):
    required: _NodeTerms | None = msgspec.field(name=_REQUIRED, default=None)


class _PodAffinity(WireStruct, frozen=True):
    required: list[dict[str, Any]] | None = msgspec.field(name=_REQUIRED, default=None)


class _Affinity(WireStruct, frozen=True):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Spec(WireStruct, frozen=True):
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None


class _Pod(WireStruct, frozen=True):
    spec: _Spec = _Spec()


def placement(pod: bytes, *, leaves: str, node: str, selector: Mapping[str, str]) -> Placement:
    """Return the placement of the seat of a pod's replacement.

    Args:
        pod: the pod as JSON of the API server.
        leaves: the node to exclude, which the pod leaves; empty for none.
        node: the only node allowed; empty for any.
        selector: further required labels of the node.

    Raises:
        InvalidInput: the pod cannot be decoded, or its nodeSelector contradicts `selector`.
    """
    spec = decode(_Pod, pod).spec
    own = spec.node_selector or {}
    for key, value in selector.items():
        if own.get(key, value) != value:
            problem = f"the pod itself demands {key}={own[key]}"
            raise InvalidInput(f"to.nodeSelector.{key}", problem, "choose nodes where it may run")
    affinity = spec.affinity or _Affinity()
    terms = _node_terms(affinity.node_affinity, leaves, node)
    on_nodes = {"nodeAffinity": {_REQUIRED: terms}} if terms else {}
    found: Placement = {
        "nodeSelector": {**own, **selector},
        "affinity": {**on_nodes, **_pod_terms(affinity)},
        "tolerations": [_kept(each, _TOLERATION_FIELDS) for each in spec.tolerations or ()],
        "topologySpreadConstraints": [
            _kept(each, _SPREAD_FIELDS)
            for each in spec.topology_spread_constraints or ()
            if each.get("whenUnsatisfiable") == "DoNotSchedule"
        ],
    }
    return {name: part for name, part in found.items() if part}


def _node_terms(affinity: _NodeAffinity | None, leaves: str, node: str) -> Placement:
    """Return the pod's node selector terms, each restricted to the nodes allowed for the seat."""
    required = affinity.required if affinity else None
    if not (required or leaves or node):
        return {}
    terms = (required.node_selector_terms if required else None) or [_NodeTerm()]
    names = [{"key": _NAME_FIELD, "operator": "NotIn", "values": [leaves]}] if leaves else []
    if node:
        names.append({"key": _NAME_FIELD, "operator": "In", "values": [node]})
    return {
        "nodeSelectorTerms": [
            _node_term(term, names) for term in terms if term != _NodeTerm() or not required
        ]
    }


def _node_term(term: _NodeTerm, names: Sequence[_Part]) -> Placement:
    expressions = {"matchExpressions": term.match_expressions} if term.match_expressions else {}
    fields = [*(term.match_fields or ()), *names]
    return {**expressions, **({"matchFields": fields} if fields else {})}


def _pod_terms(affinity: _Affinity) -> Placement:
    kinds = {"podAffinity": affinity.pod_affinity, "podAntiAffinity": affinity.pod_anti_affinity}
    return {
        kind: {_REQUIRED: [_kept(term, _TERM_FIELDS) for term in found.required]}
        for kind, found in kinds.items()
        if found and found.required
    }


def _kept(written: _Part, fields: Any) -> Placement:  # noqa: ANN401 - names, however kept
    return {name: value for name, value in written.items() if name in fields}
