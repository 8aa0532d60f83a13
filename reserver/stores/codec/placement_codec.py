"""Parses ``placement``, which users write, and ``placements``, which Reserver writes.

`k8s.objects.constraints` reads the fields that a pod's spec also has. It ignores unknown fields,
because the API server has validated pods; this module validates a placement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, singledispatch
from typing import Any

import msgspec
from msgspec import inspect

from reserver.cluster.constraints import Constraints
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects import constraints, names, selectors
from reserver.k8s.objects.constraints import (
    Affinity,
    PodAffinityTerm,
    SpreadObject,
    TolerationObject,
    WrittenDemands,
    sizes,
)
from reserver.k8s.objects.limits import HOME, MOST_ITEMS, SpecLimits, check_count, check_number
from reserver.k8s.objects.objects import encode, from_msgspec
from reserver.k8s.objects.selectors import Expression, LabelSelector, NodeSelectorTerm
from reserver.reservations.enums import Strategy
from reserver.reservations.placement import Part, Parts, Placement


class PlacementObject(msgspec.Struct, rename="camel"):
    """The field ``placement``."""

    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationObject] | None = None
    topology_spread_constraints: list[SpreadObject] | None = None
    strategy: Strategy = Strategy.PACK


_PARTS: dict[str, Any] = {
    field.encode_name: field.type for field in msgspec.structs.fields(PlacementObject)
}
_TYPES = {name: inspect.type_info(kind) for name, kind in _PARTS.items()}
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES = ("Honor", "Ignore")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")


class PartObject(msgspec.Struct, frozen=True):
    """An item of ``placements`` in a status, where fields of a newer version are ignored."""

    node: str
    slots: int


class StrictPart(PartObject, frozen=True, forbid_unknown_fields=True):
    """An item of ``placements`` in a spec, where `newer_fields` tells of unknown fields."""


def read(
    document: Any,  # noqa: ANN401 - whatever YAML can hold
    namespace: str,
    limits: SpecLimits = HOME,
) -> Placement:
    """Return the placement that a document describes.

    Args:
        namespace: the namespace of the owners, for pod affinity.
        limits: the bounds on its fields.

    Raises:
        InvalidInput: some field is invalid; the error carries its path.
    """
    if not isinstance(document, dict):
        problem = f"{shorten(repr(document))} is not a mapping"
        raise InvalidInput("", problem, f"write some of {', '.join(_PARTS)}")
    given = {name: value for name, value in document.items() if value not in (None, {}, [], "pack")}
    parts: dict[str, bytes] = {}
    for name, value in given.items():
        kind = _PARTS.get(name)
        if kind is None:
            raise _unknown(name, _PARTS)
        _refuse_unknown(value, _TYPES[name], name)
        _check(_converted(value, kind, name), name, limits)
        parts[name] = encode(value)
    written = WrittenDemands(
        namespace=namespace if "affinity" in given else "",
        selector=parts.get("nodeSelector", b""),
        affinity=parts.get("affinity", b""),
        tolerations=parts.get("tolerations", b""),
        spread=parts.get("topologySpreadConstraints", b""),
    )
    demands = constraints.demands(written)
    _check_size(demands.constraints, limits)
    return Placement(
        constraints=demands.constraints,
        strategy=Strategy(given.get("strategy", Strategy.PACK)),
        text=json.dumps(given, sort_keys=True) if given else "",
    )


def read_parts(written: Sequence[PartObject]) -> Parts:
    """Return the nodes and slots of a placed reservation.

    Raises:
        InvalidInput: Reserver does not write such placements.
    """
    remedy = "remove placements, and Reserver places it again"
    if len({part.node for part in written}) < len(written):
        raise InvalidInput("", "names a node twice", remedy)
    for index, part in enumerate(written):
        names.check_subdomain(part.node, f"[{index}].node", "a node's name")
        if not 1 <= part.slots <= HOME.slots:
            problem = f"{shorten(str(part.slots))} is out of range"
            raise InvalidInput(f"[{index}].slots", problem, remedy)
    return tuple(Part(part.node, part.slots) for part in written)


def show_parts(parts: Parts) -> list[dict[str, Any]]:
    """Return ``placements`` for a spec or status."""
    return [{"node": part.node, "slots": part.slots} for part in parts]


def _converted(value: Any, kind: Any, path: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as exc:
        remedy = f"write {path} as in the spec of a pod"
        if kind is Strategy:
            remedy = f"write {' or '.join(Strategy)}"
        raise from_msgspec(exc, remedy).under(path) from exc


def _unknown(name: object, known: Any) -> InvalidInput:  # noqa: ANN401 - names, however kept
    return InvalidInput(shorten(str(name)), "is not known", f"the fields are {', '.join(known)}")


def _refuse_unknown(value: Any, kind: inspect.Type, path: str) -> None:  # noqa: ANN401
    """Refuse fields that a type does not have."""
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        for name, part in value.items():
            if name not in fields:
                raise _unknown(name, fields).under(path)
            if name == _PREFERRED and part:
                remedy = "require it, or let strategy choose among the nodes"
                raise InvalidInput(f"{path}.{name}", "has no effect here", remedy)
            _refuse_unknown(part, fields[name], f"{path}.{name}")
    elif isinstance(kind, inspect.ListType) and isinstance(value, list):
        for index, part in enumerate(value[:MOST_ITEMS]):  # A longer one is refused anyway.
            _refuse_unknown(part, kind.item_type, f"{path}[{index}]")
    elif isinstance(kind, inspect.IntType) and isinstance(value, int):
        least, most = int(kind.ge or 0), int(kind.le or 0)
        if not least <= value <= most:
            problem = f"{shorten(str(value))} is out of range"
            raise InvalidInput(path, problem, f"write {least} to {most}")


def _check_size(demanded: Constraints, limits: SpecLimits) -> None:
    terms, labels = sizes(demanded)
    check_number(terms, "", limits.terms, "terms")
    check_number(labels, "", limits.labels, "labels in selectors")
    check_number(len(demanded.tolerations), "tolerations", limits.tolerations, "entries")


def _most(value: list[object], limits: SpecLimits) -> int:
    """Return the most entries that a list may have."""
    match value:
        case [Expression(), *_]:
            return limits.labels
        case [TolerationObject(), *_]:
            return limits.tolerations
        case [msgspec.Struct(), *_]:
            return limits.terms
    return limits.values


def _check(value: object, path: str, limits: SpecLimits) -> None:
    """Refuse fields that the API server refuses in a pod, and fields without effect on a hold."""
    if isinstance(value, list):
        check_count(value, path, _most(value, limits))
        for index, part in enumerate(value):
            _check(part, f"{path}[{index}]", limits)
    elif isinstance(value, dict):
        for key, text in value.items():
            names.check_label_key(key, f"{path}.{shorten(key)}")
            names.check_label_value(text, f"{path}.{shorten(key)}")
    elif isinstance(value, msgspec.Struct):
        for field, problem, remedy in _problems(value):
            raise InvalidInput(f"{path}.{field}", problem, remedy)
        for name, shown in _fields(type(value)):
            _check(getattr(value, name), f"{path}.{shown}", limits)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a struct with their names on the wire."""
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind))


Problems = Iterator[tuple[str, str, str]]
"""Field, problem and remedy."""


@singledispatch
def _problems(value: msgspec.Struct) -> Problems:  # noqa: ARG001 - for the registered types
    """Yield the problems of a struct's own fields."""
    yield from ()


@_problems.register
def _(value: NodeSelectorTerm) -> Problems:
    for index, term in enumerate(value.match_expressions or ()):
        yield from _term_problems(term, f"matchExpressions[{index}]", _NODE_OPERATORS)
    for index, term in enumerate(value.match_fields or ()):
        if term.key != "metadata.name" or selectors.field_requirement(term) is None:
            remedy = "write key metadata.name, operator In or NotIn, and one value"
            yield f"matchFields[{index}]", "does not select one name", remedy


@_problems.register
def _(value: LabelSelector) -> Problems:
    for index, term in enumerate(value.match_expressions or ()):
        yield from _term_problems(term, f"matchExpressions[{index}]", _LABEL_OPERATORS)


@_problems.register
def _(value: PodAffinityTerm) -> Problems:
    yield from _key_problems(value.topology_key)


@_problems.register
def _(value: TolerationObject) -> Problems:
    yield from _one_of("operator", value.operator, ("Exists", "Equal"))
    yield from _one_of("effect", value.effect, _EFFECTS)
    if not value.key and value.operator != "Exists":
        yield "key", "is missing", "write the taint's key, or operator Exists for all taints"


@_problems.register
def _(spread: SpreadObject) -> Problems:
    yield from _key_problems(spread.topology_key)
    if spread.max_skew < 1:
        yield "maxSkew", f"{spread.max_skew} is less than 1", "write by how much domains may differ"
    if spread.when_unsatisfiable != "DoNotSchedule":
        problem = f"{shorten(repr(spread.when_unsatisfiable))} has no effect here"
        yield "whenUnsatisfiable", problem, "write DoNotSchedule"
    if spread.min_domains is not None and spread.min_domains < 1:
        yield "minDomains", f"{spread.min_domains} is less than 1", "write the number of domains"
    yield from _one_of("nodeAffinityPolicy", spread.node_affinity_policy or "", _POLICIES)
    yield from _one_of("nodeTaintsPolicy", spread.node_taints_policy or "", _POLICIES)


def _one_of(field: str, value: str, known: Sequence[str]) -> Problems:
    if value and value not in known:
        yield field, f"{shorten(repr(value))} is not known", f"write {', '.join(known)}"


def _key_problems(key: str) -> Problems:
    if not names.is_label_key(key):
        yield "topologyKey", f"{shorten(repr(key))} is not a label's key", "name a node's label"


def _term_problems(term: Expression, path: str, operators: Sequence[str]) -> Problems:
    if term.operator not in operators:
        problem = f"{shorten(repr(term.operator))} is not an operator"
        yield f"{path}.operator", problem, f"write {', '.join(operators)}"
    if not names.is_label_key(term.key):
        yield f"{path}.key", f"{shorten(repr(term.key))} is not a label's key", "name a label"
    if selectors.requirement(term) is None:
        remedy = "In and NotIn take values of labels, Gt and Lt one number, the others none"
        yield f"{path}.values", f"do not fit operator {term.operator}", remedy
