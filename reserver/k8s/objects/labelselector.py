"""Label selectors as one text, such as ``zone in (a,b),!spot``: `labels.Parse` of apimachinery."""

from __future__ import annotations

import re

from reserver.cluster.labels import Requirement, Selector, integer
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.names import check_label_key, check_label_value

_WORD = r"[^\s=!(),<>]+"
_TERM = re.compile(
    rf"""\s*(?: !\s*(?P<absent>{_WORD})
         | (?P<key>{_WORD}) (?: \s*(?P<operator>==|=|!=|<|>)\s*(?P<value>{_WORD})?
                              | \s+(?P<among>in|notin)\s*\((?P<values>[^()=!<>]*)\) )? )\s*""",
    re.VERBOSE,
)
_OPERATORS = {"==": "In", "=": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}
_BOUNDS = {">": "Gt", "<": "Lt"}
_REMEDY = "write a label selector such as zone in (a,b),disk=ssd,!spot"


def parse(text: str) -> Selector:
    """Return a label selector; an empty text selects everything.

    Raises:
        InvalidInput: it is not one.
    """
    requirements: list[Requirement] = []
    position = 0
    while text.strip():
        match = _TERM.match(text, position)
        if match is None:
            problem = f"{shorten(text)!r} is not a label selector from {shorten(text[position:])!r}"
            raise InvalidInput("", problem, _REMEDY)
        requirements.append(_requirement(match))
        position = match.end()
        if position == len(text):
            break
        if text[position] != ",":
            problem = f"{shorten(text)!r} has no comma before {shorten(text[position:])!r}"
            raise InvalidInput("", problem, _REMEDY)
        position += 1
    return Selector(tuple(requirements))


def _requirement(match: re.Match[str]) -> Requirement:
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
    return Requirement(key, _OPERATORS.get(written) or _BOUNDS[written], values)


def _values(match: re.Match[str]) -> frozenset[str]:
    if match["among"] is None:
        return frozenset({match["value"] or ""})
    values = frozenset(value.strip() for value in match["values"].split(","))
    if any(re.search(r"\s", value) for value in values):
        problem = f"({shorten(match['values'])}) has no comma between two values"
        raise InvalidInput("", problem, _REMEDY)
    return values
