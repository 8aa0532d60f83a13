"""Readers of what is no plain value in a policy: selectors, durations and priorities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from reserver.cluster.labels import NOTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import selectors
from reserver.rebalance.arguments.base import Int32, LabelSelector, PolicyPart
from reserver.rebalance.arguments.evictor import SYSTEM_CRITICAL
from reserver.settings.struct_reader import Readers, Walk

PriorityClasses = Callable[[str], int | None]
"""The value of a PriorityClass by its name; None if there is no such class."""

_DURATION = re.compile(
    r"(?P<sign>[-+]?)(?P<parts>(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|0)"
)
_PART = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_MOST_CHARACTERS = 100
_LONGEST_S = 2**63 / 1e9
"""Of a Go duration, which counts nanoseconds in an int64."""


class _Expression(PolicyPart, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Selector(PolicyPart, frozen=True):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[_Expression, ...] = ()


class _NamedSelector(PolicyPart, frozen=True):
    name: str = ""
    selector: LabelSelector = Selector()


class _Priority(PolicyPart, frozen=True):
    value: Int32 | None = None
    name: str = ""


def readers(classes: PriorityClasses) -> Readers:
    """Return the readers by their names in `reserver.rebalance.arguments.base`."""
    return {
        "duration": _duration,
        "selector": _selector,
        "named selector": lambda walk, value, path: (
            walk.struct(value, _NamedSelector, path).selector
        ),
        "text selector": _text_selector,
        "priority": lambda walk, value, path: _priority(walk, value, path, classes),
    }


def _duration(walk: Walk, value: Any, path: str) -> float:  # noqa: ANN401 - as written
    """Return a duration as Go's ``time.ParseDuration`` reads it, in seconds; it may be negative."""
    text = walk.text(value, path)
    match = _DURATION.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    seconds = math.inf
    if match:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(match[0]))
    if match is None or seconds >= _LONGEST_S:
        problem = f"{shorten(repr(text))} is not a duration"
        raise InvalidInput(path, problem, "write hours, minutes and seconds, such as 24h or 1h30m")
    return -seconds if match["sign"] == "-" else seconds


def _text_selector(walk: Walk, value: Any, path: str) -> Selector:  # noqa: ANN401 - as above
    try:
        return selectors.parse_selector(walk.text(value, path))
    except InvalidInput:
        if not isinstance(value, str):
            raise
        return NOTHING


def _selector(walk: Walk, value: Any, path: str) -> Selector:  # noqa: ANN401 - as above
    """Return a label selector; one that the API server would refuse is a problem."""
    written = walk.struct(value, _Selector, path)
    terms = ((each.key, each.operator, each.values) for each in written.match_expressions)
    with under(path):
        return selectors.checked_selector(written.match_labels, terms)


def _priority(walk: Walk, value: Any, path: str, classes: PriorityClasses) -> int:  # noqa: ANN401 - as above
    """Return the priority from which pods stay."""
    written = walk.struct(value, _Priority, path)
    if written.value is not None and written.name:
        problem = f"has value {written.value} and name {shorten(repr(written.name))}"
        raise InvalidInput(path, problem, "write one of them")
    priority: int | None = SYSTEM_CRITICAL
    if written.value is not None:
        priority = written.value
    elif written.name:
        priority = classes(written.name)
    if priority is None:
        problem = f"there is no PriorityClass {shorten(repr(written.name))}"
        raise InvalidInput(f"{path}.name", problem, "write the name of one, or value")
    if priority > SYSTEM_CRITICAL:
        problem = f"{priority} is above {SYSTEM_CRITICAL}, where system pods begin"
        raise InvalidInput(path, problem, "write a lower one")
    return priority
