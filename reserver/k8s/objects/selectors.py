"""Selectors of labels and of nodes: in objects, and as text.

A selector in an object that the API server would refuse matches nothing, as in kube-scheduler, and
the rest of the object is read. A text, such as ``zone in (a,b),!spot``, has the syntax of
`labels.Parse` in apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from reserver.cluster.constraints import NodeTerm
from reserver.cluster.labels import NOTHING, Requirement, Selector, equals, integer
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import check_count
from reserver.k8s.objects.names import check_label_key, check_label_value
from reserver.k8s.objects.objects import WireStruct

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SET_OPERATORS = frozenset({"In", "NotIn"})
_KEY_OPERATORS = frozenset({"Exists", "DoesNotExist"})
_NUMBER_OPERATORS = frozenset({"Gt", "Lt"})
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


class Expression(WireStruct, frozen=True):
    """One term of a selector; the same for labels of pods and of nodes."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(WireStruct, frozen=True):
    """A LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class StrictExpression(Expression, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A term of a selector in an object of Reserver; unknown fields are refused."""


class StrictSelector(LabelSelector, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A LabelSelector in an object of Reserver; unknown fields are refused."""

    match_expressions: list[StrictExpression] | None = None  # type: ignore[assignment]  # frozen


class NodeSelectorTerm(WireStruct, frozen=True):
    """One alternative of a NodeSelector."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(WireStruct, frozen=True):
    """Alternatives, of which a node must meet at least one."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Return the alternatives of a node selector, without empty ones: no node meets these."""
    return tuple(
        NodeTerm(
            labels=_selector(term.match_expressions or (), requirement),
            fields=_selector(term.match_fields or (), field_requirement),
        )
        for term in selector.node_selector_terms or ()
        if term.match_expressions or term.match_fields
    )


def label_selector(selector: LabelSelector | None) -> Selector:
    """Return a label selector; None matches nothing, an empty one everything."""
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
    """Return one term on a field; None unless it is ``In`` or ``NotIn`` with one value."""
    values = frozenset(expression.values or ())
    if expression.operator not in _SET_OPERATORS or len(expression.values or ()) != 1:
        return None
    return Requirement(expression.key, expression.operator, values)


def checked_selector(
    labels: Mapping[str, str],
    expressions: Iterable[tuple[str, str, Sequence[str]]],
    most_values: int = 2**31,
) -> Selector:
    """Return a label selector of one of our own objects, and refuse an invalid one.

    Args:
        labels: ``matchLabels``.
        expressions: key, operator and values of each of ``matchExpressions``.
        most_values: most values of an expression.

    Raises:
        InvalidInput: the API server would refuse it; the error carries the path.
    """
    terms: list[Requirement] = []
    for key, value in labels.items():
        path = f"matchLabels.{shorten(key)}"
        check_label_key(key, path)
        check_label_value(value, path)
        terms.append(Requirement(key, "In", frozenset({value})))
    for index, (key, operator, values) in enumerate(expressions):
        path = f"matchExpressions[{index}]"
        check_count(values, f"{path}.values", most_values)
        check_label_key(key, f"{path}.key")
        wants_values = _WITH_VALUES.get(operator)
        if wants_values is None:
            problem = f"{shorten(operator)!r} is not an operator"
            raise InvalidInput(f"{path}.operator", problem, f"write {', '.join(_WITH_VALUES)}")
        if wants_values is not bool(values):
            remedy = "write at least one value" if wants_values else "remove them"
            raise InvalidInput(f"{path}.values", f"do not fit operator {operator}", remedy)
        for at, value in enumerate(values):
            check_label_value(value, f"{path}.values[{at}]")
        terms.append(Requirement(key, operator, frozenset(values)))
    return Selector(tuple(terms))


_WORD = r"[^\s=!(),<>]+"
_TERM = re.compile(
    rf"""\s*(?: !\s*(?P<absent>{_WORD})
         | (?P<key>{_WORD}) (?: \s*(?P<operator>==|=|!=|<|>)\s*(?P<value>{_WORD})?
                              | \s+(?P<among>in|notin)\s*\((?P<values>[^()=!<>]*)\) )? )\s*""",
    re.VERBOSE,
)
_TEXT_OPERATORS = {"==": "In", "=": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}
_BOUNDS = {">": "Gt", "<": "Lt"}
_REMEDY = "write a label selector such as zone in (a,b),disk=ssd,!spot"


def parse_selector(text: str) -> Selector:
    """Return a label selector; an empty text selects everything.

    Raises:
        InvalidInput: the text is not a label selector.
    """
    requirements: list[Requirement] = []
    position = 0
    while text.strip():
        match = _TERM.match(text, position)
        if match is None:
            problem = f"{shorten(text)!r} is not a label selector from {shorten(text[position:])!r}"
            raise InvalidInput("", problem, _REMEDY)
        requirements.append(_requirement_of(match))
        position = match.end()
        if position == len(text):
            break
        if text[position] != ",":
            problem = f"{shorten(text)!r} has no comma before {shorten(text[position:])!r}"
            raise InvalidInput("", problem, _REMEDY)
        position += 1
    return Selector(tuple(requirements))


def _requirement_of(match: re.Match[str]) -> Requirement:
    key = match["key"] or match["absent"]
    check_label_key(key, "")
    if match["absent"]:
        return Requirement(key, "DoesNotExist")
    written = match["operator"] or match["among"]
    if not written:
        return Requirement(key, "Exists")
    values = _values(match)
    for value in values:
        check_label_value(value, "")
    if written in _BOUNDS and integer(next(iter(values))) is None:
        problem = f"{key}{written}{shorten(next(iter(values)))} compares with no integer"
        raise InvalidInput("", problem, "write a whole number")
    return Requirement(key, _TEXT_OPERATORS.get(written) or _BOUNDS[written], values)


def _values(match: re.Match[str]) -> frozenset[str]:
    if match["among"] is None:
        return frozenset({match["value"] or ""})
    values = frozenset(value.strip() for value in match["values"].split(","))
    if any(re.search(r"\s", value) for value in values):
        problem = f"({shorten(match['values'])}) has no comma between two values"
        raise InvalidInput("", problem, _REMEDY)
    return values
