"""Fields of reservations by their paths, for `--sort-by` and `--field-selector`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from reserver.cli import serialization
from reserver.cli.failure import WrongUsage
from reserver.client import ReservationInfo
from reserver.cluster import quantity
from reserver.errors import InvalidInput

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_TERM = re.compile(r"([^=!]+?)\s*(!=|==|=)\s*(.*)")
_ROOTS = ("name", "id", "etag", "labels", "spec", "status")
_EXAMPLE = "write one that `-o json` prints, such as spec.node or status.phase"


class Term(NamedTuple):
    """A condition on a field: `path` is `value`, or is not."""

    path: Sequence[str]
    value: str
    is_negated: bool


def path_of(flag: str, text: str) -> list[str]:
    """Return the steps to a field; kubectl's ``{.spec.node}`` and ``.metadata.name`` work, too.

    Raises:
        Failed: reservations have no such field.
    """
    plain = text.strip().strip("{}").lstrip(".").replace("metadata.name", "name")
    steps = [name or index for name, index in _STEP.findall(plain)]
    if plain.startswith("spec.resources."):  # Their names have dots.
        steps = ["spec", "resources", plain.removeprefix("spec.resources.")]
    if not steps or steps[0] not in _ROOTS:
        raise WrongUsage(f"{flag}: {text!r} is not a field; {_EXAMPLE}")
    return steps


def terms_of(text: str) -> list[Term]:
    """Return the conditions of a ``--field-selector``, all of which have to hold.

    Raises:
        Failed: it is malformed.
    """
    flag, terms = "--field-selector", []
    for part in filter(None, map(str.strip, text.split(","))):
        found = _TERM.fullmatch(part)
        if found is None:
            raise WrongUsage(f"{flag}: {part!r} is not FIELD=VALUE; write e.g. status.phase=Active")
        terms.append(Term(path_of(flag, found[1]), found[3].strip(), found[2] == "!="))
    return terms


def chosen(found: Sequence[ReservationInfo], selector: str, sort_by: str) -> list[ReservationInfo]:
    """Return the reservations that a selector means, in the order of a field.

    Raises:
        Failed: one of both is malformed.
    """
    terms = terms_of(selector)
    order = path_of("--sort-by", sort_by) if sort_by else None
    shown = [(each, serialization.show(each)) for each in found] if terms or order else []
    if not shown:
        return list(found)
    kept = [(each, told) for each, told in shown if all(_holds(term, told) for term in terms)]
    if order is not None:
        kept.sort(key=_key(order))
    return [each for each, _ in kept]


def _holds(term: Term, shown: Mapping[str, Any]) -> bool:
    value = _value(shown, term.path)
    said = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return (said == term.value) is not term.is_negated


def _key(path: Sequence[str]) -> Callable[[tuple[ReservationInfo, Mapping[str, Any]]], Any]:
    """Return the key of a sort: numbers and quantities by size, absent values last."""

    def key(pair: tuple[ReservationInfo, Mapping[str, Any]]) -> tuple[bool, float, str]:
        value = _value(pair[1], path)
        if isinstance(value, int | float):
            return False, value, ""
        if path[:2] == ["spec", "resources"] and value is not None:
            with suppress(InvalidInput):
                return False, quantity.amount(path[-1], str(value)), ""
        return value is None, 0, str(value)

    return key


def _value(shown: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever JSON can hold
    for step in path:
        if isinstance(shown, list):
            shown = shown[int(step)] if step.isdecimal() and int(step) < len(shown) else None
        else:
            shown = shown.get(step) if isinstance(shown, Mapping) else None
    return shown
