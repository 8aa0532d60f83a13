"""Label selectors, and tables of labels that they are applied to.

The meaning is that of apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from reserver.cluster.columns import Bools, Column

Labels = Mapping[str, str]

_MOST_COLUMNS = 128
"""Keys that a table keeps a column for: pods choose them, and each costs memory in every row."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a selector.

    Attributes:
        key: the label that it is about.
        operator: ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``.
        values: what it compares with; one integer for ``Gt`` and ``Lt``.
    """

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def allows(self, value: str | None) -> bool:
        """Return whether a label's value, None for an absent label, is allowed."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        (bound,) = self.values
        number, limit = integer(value), integer(bound)
        if number is None or limit is None:
            return False
        return number > limit if self.operator == "Gt" else number < limit


@dataclass(frozen=True, slots=True)
class Selector:
    """Terms that labels have to meet, all of them; without any, all labels do."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet all terms."""
        return all(term.allows(labels.get(term.key)) for term in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector((Requirement("", "In"),))
"""Met by no labels: what an absent selector means, and one that cannot be read."""


def equals(labels: Labels) -> Selector:
    """Return a selector for each of these labels with its value."""
    return Selector(
        tuple(Requirement(key, "In", frozenset({value})) for key, value in labels.items())
    )


def integer(text: str | None) -> int | None:
    """Return a text as Go's ``strconv.ParseInt`` reads it for 64 bits, None where it does not."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


class LabelTable:
    """The labels of rows, as one column a key, made when a selector first asks for the key."""

    def __init__(self, size: int) -> None:
        """Begin with `size` rows without labels."""
        self._labels: list[Labels | None] = [None] * size
        self._columns: dict[str, Column[str]] = {}

    def grow(self, size: int) -> None:
        """Have `size` rows, those that are new without labels."""
        self._labels += [None] * (size - len(self._labels))
        for column in self._columns.values():
            column.grow(size)

    def put(self, row: int, labels: Labels | None) -> None:
        """Give a row labels; None for a row that stands for nothing."""
        if self._labels[row] is labels:
            return
        self._labels[row] = labels
        for key, column in self._columns.items():
            column.put(row, labels.get(key) if labels else None)

    def column(self, key: str) -> Column[str]:
        """Return the values of one key by row."""
        column = self._columns.pop(key, None)
        if column is None:
            column = Column(len(self._labels))
            for row, labels in enumerate(self._labels):
                if labels and key in labels:
                    column.put(row, labels[key])
            if len(self._columns) >= _MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column  # Last: the first one is the one not asked for for longest.
        return column

    def matching(self, selector: Selector) -> Bools:
        """Return, for each row, whether its labels meet a selector; rows without any included."""
        rows = np.ones(len(self._labels), dtype=np.bool_)
        for requirement in selector.requirements:
            rows &= self._allowed(requirement)
        return rows

    def all_present(self, keys: Iterable[str]) -> Bools:
        """Return, for each row, whether it has all of these labels."""
        return self.matching(Selector(tuple(Requirement(key, "Exists") for key in keys)))

    def _allowed(self, requirement: Requirement) -> Bools:
        if not requirement.values and requirement.operator == "In":
            return np.zeros(len(self._labels), dtype=np.bool_)
        column = self.column(requirement.key)
        match requirement.operator:
            case "In":
                return column.among(requirement.values)
            case "NotIn":
                return ~column.among(requirement.values)
            case "Exists":
                return column.present()
            case "DoesNotExist":
                return ~column.present()
        return column.where(requirement.allows)
