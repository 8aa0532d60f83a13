"""Selectors of labels and of nodes, from what objects say.

One that the API server would not have let in means nothing here: it matches nothing, as in
kube-scheduler, and the rest of the object is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from reserver.cluster.constraints import NodeTerm
from reserver.cluster.labels import NOTHING, Requirement, Selector, equals, integer
from reserver.k8s.objects.objects import WireStruct

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
