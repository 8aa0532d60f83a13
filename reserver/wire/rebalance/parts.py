"""Readers and checks that the ``args`` of several plugins share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.selecting import ALL, Choice
from reserver.wire.k8s import names, selectors

UInt = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
UInt32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

Problems = Iterator[InvalidInput]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
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


class Part(msgspec.Struct, rename="camel"):
    """Base of all that is written below ``args``."""


class Args(Part):
    """Base of the arguments of all plugins; apiVersion and kind are allowed, and mean nothing."""

    api_version: str = ""
    kind: str = ""

    def malformed(self) -> Problems:
        """Yield what upstream does not decode, and a type does not say."""
        yield from ()

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from ()

    def warnings(self) -> Problems:
        """Yield what is accepted and has no effect."""
        yield from ()

    def value(self) -> Any:  # noqa: ANN401 - one type of `arguments` for each class
        """Return what the plugin works with; only if there are no problems."""
        raise NotImplementedError


class Expression(Part):
    """One term of a label selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Part):
    """A label selector."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Expression, ...] = ()

    def value(self) -> Selector:
        """Return what it selects."""
        written = selectors.LabelSelector(
            self.match_labels,
            [
                selectors.Expression(each.key, each.operator, list(each.values))
                for each in self.match_expressions
            ],
        )
        return selectors.label_selector(written)


class Names(Part):
    """Names to look at, or to pass over."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def value(self) -> Choice:
        """Return what it chooses."""
        return Choice(frozenset(self.include), frozenset(self.exclude))


class Selecting(Args):
    """Base of strategies that choose pods by namespace and labels."""

    namespaces: Names | None = None
    label_selector: LabelSelector | None = None

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from one_choice("namespaces", self.namespaces)
        yield from selector_problems("labelSelector", self.label_selector)

    @property
    def chosen(self) -> dict[str, Any]:
        """What `arguments` calls these fields."""
        return {
            "namespaces": choice(self.namespaces),
            "label_selector": selector(self.label_selector),
        }


def duration(text: str) -> float:
    """Return a duration as Go's ``time.ParseDuration`` reads it, in seconds; it may be negative.

    Raises:
        InvalidInput: it is not one.
    """
    match = _DURATION.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    seconds = math.inf
    if match:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(match[0]))
    if match is None or seconds >= _LONGEST_S:
        problem = f"{shorten(repr(text))} is not a duration"
        raise InvalidInput("", problem, "write hours, minutes and seconds, such as 24h or 1h30m")
    return -seconds if match["sign"] == "-" else seconds


def duration_problems(path: str, text: str | None) -> Problems:
    """Yield what is wrong with a duration."""
    try:
        if text is not None:
            duration(text)
    except InvalidInput as exc:
        yield exc.under(path)


def choice(written: Names | None) -> Choice:
    """Return what names choose; without any, everything."""
    return written.value() if written else ALL


def selector(written: LabelSelector | None) -> Selector:
    """Return what a label selector selects; without one, everything."""
    return written.value() if written else EVERYTHING


def one_choice(path: str, written: Names | None) -> Problems:
    """Refuse names that are both included and excluded."""
    if written and written.include and written.exclude:
        yield InvalidInput(path, "has include and exclude", "write one of them")


def only_exclude(written: Names | None) -> Problems:
    """Refuse namespaces to include: what is used there would not be counted."""
    if written and written.include:
        path = "evictableNamespaces.include"
        yield InvalidInput(path, "is not supported", "write exclude")


def among(path: str, written: Iterable[str], known: Iterable[str]) -> Problems:
    """Refuse words that are not known."""
    allowed = list(known)
    for each in written:
        if each not in allowed:
            problem = f"{shorten(repr(each))} is not known"
            yield InvalidInput(path, problem, f"write {', '.join(allowed)}")


def threshold_problems(path: str, thresholds: Mapping[str, float]) -> Problems:
    """Refuse what is no percentage, and thresholds without any."""
    if not thresholds:
        yield InvalidInput(path, "has no resource", "write e.g. cpu: 20")
    for name, percent in thresholds.items():
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent
            problem = f"{percent:g} is out of range"
            yield InvalidInput(f"{path}.{shorten(name)}", problem, "write a percentage, 0 to 100")


def above(path: str, low: Mapping[str, float], high: Mapping[str, float]) -> Problems:
    """Refuse a lower threshold above the upper one."""
    for name, percent in low.items():
        if name in high and percent > high[name]:
            problem = f"{percent:g} is above the {high[name]:g} of the upper threshold"
            yield InvalidInput(f"{path}.{shorten(name)}", problem, "write a lower percentage")


def selector_problems(path: str, written: LabelSelector | None) -> Problems:
    """Refuse a label selector that the API server would refuse."""
    for each in _term_problems(written) if written else ():
        yield each.under(path)


def _term_problems(written: LabelSelector) -> Problems:
    for key, value in written.match_labels.items():
        yield from _label_problems(f"matchLabels.{shorten(key)}", key, [value])
    for index, term in enumerate(written.match_expressions):
        path = f"matchExpressions[{index}]"
        yield from _label_problems(path, term.key, term.values)
        if term.operator not in _OPERATORS:
            problem = f"{shorten(repr(term.operator))} is not an operator"
            yield InvalidInput(f"{path}.operator", problem, f"write {', '.join(_OPERATORS)}")
        elif bool(term.values) is not (term.operator in {"In", "NotIn"}):
            remedy = "remove them" if term.values else "write at least one value"
            yield InvalidInput(f"{path}.values", f"do not fit operator {term.operator}", remedy)


def _label_problems(path: str, key: str, written: Sequence[str]) -> Problems:
    try:
        names.check_label_key(key, path)
        for value in written:
            names.check_label_value(value, path)
    except InvalidInput as exc:
        yield exc
