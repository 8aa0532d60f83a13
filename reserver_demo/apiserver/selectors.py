"""Label and field selectors.

Grammar and semantics are as in apimachinery's `labels.Parse` and `fields.ParseSelector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reserver_demo.apiserver.status import Json, bad_request

_SET_BASED = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUALITY = re.compile(r"^(?P<key>[^\s=!<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s=!<>]*)$")
_EXISTS = re.compile(r"^(?P<operator>!?)\s*(?P<key>[^\s=!<>(),]+)$")
_COMMA = re.compile(r",(?![^(]*\))")
_KEY = re.compile(r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_FIELD_TERM = re.compile(r"^(?P<field>[^=!]+)(?P<operator>==|=|!=)(?P<value>(?:[^\\,=]|\\.)*)$")

Fields = Mapping[str, Callable[[Json], str]]
"""The fields of a resource for field selectors, with their readers."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector (`labels.Requirement`)."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the term; an absent label meets `!=` and `notin`."""
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
        (bound,) = self.values
        if value is None or not value.lstrip("-").isdigit():
            return False
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    field: str
    value: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Selector:
    """The selector of a list or a watch; objects must meet all terms."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether it has terms for labels or fields."""
        return bool(self.labels or self.fields)

    def matches(self, content: Json, readers: Fields) -> bool:
        """Return whether an object is selected; `readers` are the fields of its resource."""
        metadata = content["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if not all((readers[t.field](content) == t.value) != t.negated for t in self.fields):
            return False
        labels = metadata.get("labels", {})
        return all(requirement.matches(labels) for requirement in self.labels)


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet a `metav1.LabelSelector`; an empty selector matches all."""
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    terms = [
        Requirement(key, "in", frozenset({value}))
        for key, value in selector.get("matchLabels", {}).items()
    ]
    terms += [
        Requirement(each["key"], operators[each["operator"]], frozenset(each.get("values", ())))
        for each in selector.get("matchExpressions", ())
    ]
    return all(term.matches(labels) for term in terms)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Parse a label selector.

    Raises:
        StatusError: 400 for a malformed selector.
    """
    if not text.strip():
        return ()
    return tuple(_requirement(term.strip()) for term in _COMMA.split(text))


def _requirement(term: str) -> Requirement:
    if match := _SET_BASED.match(term):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return Requirement(_key(match["key"]), match["operator"], values)
    if match := _EQUALITY.match(term):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(match["operator"], match["operator"])
        if operator in "<>" and not match["value"].lstrip("-").isdigit():
            raise bad_request(
                f"for 'Gt', 'Lt' operators, the value must be an integer: {match['value']!r}"
            )
        return Requirement(_key(match["key"]), operator, frozenset({match["value"]}))
    if match := _EXISTS.match(term):
        return Requirement(_key(match["key"]), match["operator"] or "exists")
    raise bad_request(f"unable to parse requirement: {term!r} is not a label selector")


def _key(key: str) -> str:
    if not _KEY.match(key):
        raise bad_request(f'key: Invalid value: "{key}": name part must consist of alphanumerics')
    return key


def parse_fields(text: str, readers: Fields) -> tuple[FieldTerm, ...]:
    """Parse a field selector for a resource.

    Raises:
        StatusError: 400 for a malformed selector, or an unsupported field.
    """
    terms = []
    for term in re.split(r"(?<!\\),", text) if text else ():
        match = _FIELD_TERM.match(term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        if match["field"] not in readers:
            raise bad_request(f"field label not supported: {match['field']}")
        value = re.sub(r"\\(.)", r"\1", match["value"])
        terms.append(FieldTerm(match["field"], value, negated=match["operator"] == "!="))
    return tuple(terms)
