"""Arguments and checks that several plugins share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
UInt = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
UInt32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


def _read_by(reader: str) -> msgspec.Meta:
    """Name the reader in `rebalance.policy_decoding` that converts a field to this type."""
    return msgspec.Meta(extra={"reader": reader})


Seconds = Annotated[float, _read_by("duration")]
"""A Go duration, such as ``1h30m``, in seconds."""

LabelSelector = Annotated[Selector, _read_by("selector")]
"""``matchLabels`` and ``matchExpressions``."""

NamedSelector = Annotated[Selector, _read_by("named selector")]
"""A label selector under ``selector``, next to a name."""

TextSelector = Annotated[Selector, _read_by("text selector")]
"""A selector such as ``zone in (a,b)``; one that cannot be read matches nothing, as upstream."""

Priority = Annotated[int, _read_by("priority")]
"""A number under ``value``, or the ``name`` of a PriorityClass."""

Problems = Iterator[InvalidInput]

Thresholds = Mapping[str, float]
"""Percentages of the allocatable resources of a node, by resource; 0 to 100."""


class PolicyPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all structs of a policy file."""


class Args(PolicyPart, frozen=True):
    """Base of the arguments of all plugins; apiVersion and kind are allowed, and mean nothing."""

    NAME: ClassVar[str] = ""

    api_version: str = ""
    kind: str = ""

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from ()

    def warnings(self) -> Problems:
        """Yield accepted fields that have no effect."""
        yield from ()


class Choice(PolicyPart, frozen=True):
    """A choice of namespaces, or of kinds of owners: `include` without `exclude`.

    An empty `include` chooses every name.
    """

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Return whether a name is chosen."""
        return (not self.include or name in self.include) and name not in self.exclude


ALL = Choice()


class Selecting(Args, frozen=True):
    """Base of strategies that choose pods by namespace and labels.

    Attributes:
        namespaces: the namespaces of the pods that the strategy considers.
        label_selector: the labels of these pods.
    """

    namespaces: Choice = ALL
    label_selector: LabelSelector = EVERYTHING

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from one_choice("namespaces", self.namespaces)


def one_choice(path: str, chosen: Choice) -> Problems:
    """Refuse names that are both included and excluded."""
    if chosen.include and chosen.exclude:
        yield InvalidInput(path, "has include and exclude", "write one of them")


def only_exclude(chosen: Choice) -> Problems:
    """Refuse included namespaces: the usage of other namespaces would not be counted."""
    if chosen.include:
        yield InvalidInput("evictableNamespaces.include", "is not supported", "write exclude")


def among(path: str, written: Iterable[str], known: Iterable[str]) -> Problems:
    """Refuse values that are not allowed."""
    allowed = list(known)
    for each in sorted(written):
        if each not in allowed:
            problem = f"{shorten(repr(str(each)))} is not known"
            yield InvalidInput(path, problem, f"write {', '.join(allowed)}")


def threshold_problems(path: str, thresholds: Thresholds) -> Problems:
    """Refuse a threshold that is not a percentage, and an empty set of thresholds."""
    if not thresholds:
        yield InvalidInput(path, "has no resource", "write e.g. cpu: 20")
    for name, percent in thresholds.items():
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent
            problem = f"{percent:g} is out of range"
            yield InvalidInput(f"{path}.{shorten(name)}", problem, "write a percentage, 0 to 100")


def above(path: str, low: Thresholds, high: Thresholds) -> Problems:
    """Refuse a lower threshold above the upper one."""
    for name, percent in low.items():
        if name in high and percent > high[name]:
            problem = f"{percent:g} is above the {high[name]:g} of the upper threshold"
            yield InvalidInput(f"{path}.{shorten(name)}", problem, "write a lower percentage")
