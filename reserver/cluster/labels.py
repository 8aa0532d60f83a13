"""Label selectors, and tables of labels to match them against.

The semantics are those of apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from reserver.cluster.byte_cache import ByteCache
from reserver.cluster.categorical import Bools, Categorical

Labels = Mapping[str, str]

UNREAD: Labels = MappingProxyType({})
"""Stands for too many labels to read. Only the empty selector matches it."""

_COLUMN_BYTES = 32 * 2**20
"""Bound on the columns of one table: tenants choose the keys, and each column has every row."""

_VALUE_BYTES = 100
"""Approximate bytes of a value in a column, without its id."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a selector.

    Attributes:
        key: key of the label.
        operator: ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``.
        values: the values to compare with; one integer for ``Gt`` and ``Lt``.
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
    """Requirements that labels must all meet. An empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet all requirements."""
        if labels is UNREAD and self.requirements:
            return False  # Not even a selector that demands an absent label matches.
        return all(term.allows(labels.get(term.key)) for term in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector((Requirement("", "In"),))
"""Matches nothing: the meaning of an absent selector, and of a selector that cannot be read."""


def equals(labels: Labels) -> Selector:
    """Return a selector that requires each of these labels with its value."""
    return Selector(
        tuple(Requirement(key, "In", frozenset({value})) for key, value in labels.items())
    )


def integer(text: str | None) -> int | None:
    """Return the int64 that Go's ``strconv.ParseInt`` reads from a text; None if it fails."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


class LabelTable:
    """The labels of rows, as one column for each key, made when a selector first uses the key.

    All columns together take no more steps to make than the rows have labels; a key that no row has
    costs one look-up.
    """

    def __init__(self, size: int) -> None:
        """Begin with `size` rows without labels."""
        self._labels: list[Labels | None] = [None] * size
        self._rows: dict[str, set[int]] = {}
        self._columns: ByteCache[str, Categorical[str]] = ByteCache(_COLUMN_BYTES)

    def grow(self, size: int) -> None:
        """Grow to `size` rows; the new ones have no labels."""
        self._labels += [None] * (size - len(self._labels))
        self._columns.clear()

    def of(self, row: int) -> Labels:
        """Return the labels of a row; empty for a free row."""
        return self._labels[row] or {}

    def put(self, row: int, labels: Labels | None) -> None:
        """Set the labels of a row; None for a free row."""
        before, after = self._labels[row] or {}, labels or {}
        self._labels[row] = labels
        if before is after:
            return
        for key in before.keys() - after.keys():
            rows = self._rows[key]
            rows.discard(row)
            self._update_column(key, row, None)
            if not rows:
                del self._rows[key]
        has_columns = self._columns.size > 0  # False while a large cluster is loaded.
        for key, value in after.items():
            self._rows.setdefault(key, set()).add(row)
            if has_columns:
                self._update_column(key, row, value)

    def fill(self, rows: range, labels: Sequence[Labels]) -> None:
        """Set the labels of rows that have none yet, at once; most rows share few label sets."""
        self._labels[rows.start : rows.stop] = labels
        alike: dict[int, list[int]] = {}
        for row, each in zip(rows, labels, strict=True):
            alike.setdefault(id(each), []).append(row)
        for same in alike.values():
            for key in labels[same[0] - rows.start]:
                self._rows.setdefault(key, set()).update(same)
        self._columns.clear()

    def column(self, key: str) -> Categorical[str]:
        """Return the values of one key by row."""
        column = self._columns.get(key)
        if column is None:
            column = Categorical(len(self._labels))
            rows = list(self._rows.get(key, ()))
            column.fill(rows, [self._labels[row][key] for row in rows])  # type: ignore[index]  # they have it
            if rows:
                self._columns.put(key, column, column.ids.nbytes + len(rows) * _VALUE_BYTES)
        return column

    def matching(self, selector: Selector) -> Bools:
        """Return, for each row, whether a selector matches its labels; free rows have no labels."""
        rows = np.ones(len(self._labels), dtype=np.bool_)
        for requirement in selector.requirements:
            if requirement.key in self._rows:
                rows &= self._allowed(requirement)
            elif not requirement.allows(None):
                rows[:] = False
            if not rows.any():
                break
        return rows

    def all_present(self, keys: Iterable[str]) -> Bools:
        """Return, for each row, whether it has a label for each of these keys."""
        return self.matching(Selector(tuple(Requirement(key, "Exists") for key in keys)))

    def _update_column(self, key: str, row: int, value: str | None) -> None:
        column = self._columns.get(key)
        if column is not None:
            column.put(row, value)

    def _allowed(self, requirement: Requirement) -> Bools:
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
