"""A column of a table: one value or none for each row, as an array of small integers.

A test of values runs once for each distinct value, whatever the number of rows; finding the rows of
a value is one look-up in numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ids = NDArray[np.int32]

ABSENT = -1
"""The id of a row that has no value."""

_FEW = 4

V = TypeVar("V", bound=Hashable)


class Categorical(Generic[V]):
    """One value, or none, for each row.

    Attributes:
        ids: int32 array, rows: the id of the row's value, `ABSENT` for none. The id of a value that
            no row has any more is used again.
    """

    def __init__(self, size: int) -> None:
        """Begin with `size` rows that have no value."""
        self.ids: Ids = np.full(size, ABSENT, dtype=np.int32)
        self._id_of: dict[V, int] = {}
        self._values: dict[int, V] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    @property
    def width(self) -> int:
        """One more than the largest id: the least length of an array by id."""
        return len(self._uses)

    def grow(self, size: int) -> None:
        """Grow to `size` rows; the new ones have no value."""
        more = size - len(self.ids)
        self.ids = np.pad(self.ids, (0, more), constant_values=ABSENT)

    def put(self, row: int, value: V | None) -> None:
        """Set the value of a row; None for no value."""
        before = int(self.ids[row])
        known = ABSENT if value is None else self._id_of.get(value, ABSENT)
        if known == before and (known != ABSENT or value is None):
            return
        self.ids[row] = ABSENT if value is None else self._use(value)
        if before != ABSENT:
            self._leave(before)

    def fill(self, rows: Sequence[int] | slice, values: Sequence[V]) -> None:
        """Set the values of rows that have no value yet, at once."""
        for value, count in Counter(values).items():
            self._uses[self._use(value)] += count - 1
        self.ids[rows] = [self._id_of[value] for value in values]

    def at(self, row: int) -> V | None:
        """Return the value of a row; None if it has none."""
        return self._values.get(int(self.ids[row]))

    def items(self) -> Iterator[tuple[int, V]]:
        """Yield each value that some row has, with its id."""
        return iter(self._values.items())

    def having(self, ids: Iterable[int]) -> Bools:
        """Return, for each row, whether its value has one of these ids."""
        numbers = list(ids)
        if 0 < len(numbers) <= _FEW:  # Comparing is several times as fast as a look-up table.
            rows: Bools = self.ids == numbers[0]
            for number in numbers[1:]:
                rows |= self.ids == number
            return rows
        matches = np.zeros(self.width + 1, dtype=np.bool_)  # The last element is for ABSENT.
        matches[numbers] = True
        return matches[self.ids]

    def among(self, values: Iterable[V]) -> Bools:
        """Return, for each row, whether it has one of these values."""
        return self.having(self._id_of[value] for value in values if value in self._id_of)

    def where(self, test: Callable[[V], bool]) -> Bools:
        """Return, for each row, whether it has a value that passes a test."""
        return self.having(number for number, value in self.items() if test(value))

    def present(self) -> Bools:
        """Return, for each row, whether it has a value."""
        rows: Bools = self.ids != ABSENT
        return rows

    def _use(self, value: V) -> int:
        number = self._id_of.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self._uses)
                self._uses.append(0)
            self._id_of[value] = number
            self._values[number] = value
            self._appeared(number, value)
        self._uses[number] += 1
        return number

    def _leave(self, number: int) -> None:
        self._uses[number] -= 1
        if not self._uses[number]:
            value = self._values.pop(number)
            del self._id_of[value]
            self._free.append(number)
            self._vanished(number, value)

    def _appeared(self, number: int, value: V) -> None:
        """Handle a value that no row had before."""

    def _vanished(self, number: int, value: V) -> None:
        """Handle a value that no row has any more."""


class IndexedCategorical(Categorical[V]):
    """A column that finds values by topic, without a scan of all values."""

    def __init__(self, size: int, topics: Callable[[V], Iterable[Hashable]]) -> None:
        """Begin with `size` rows without a value; `topics` returns the topics of a value."""
        super().__init__(size)
        self._topics = topics
        self._by_topic: dict[Hashable, set[int]] = {}

    def about(self, topics: Iterable[Hashable]) -> Iterator[tuple[int, V]]:
        """Yield each value that has at least one of these topics, with its id."""
        empty: set[int] = set()
        found = empty.union(*(self._by_topic.get(topic, empty) for topic in topics))
        return ((number, self._values[number]) for number in found)

    def _appeared(self, number: int, value: V) -> None:
        for topic in self._topics(value):
            self._by_topic.setdefault(topic, set()).add(number)

    def _vanished(self, number: int, value: V) -> None:
        for topic in set(self._topics(value)):
            self._by_topic[topic].discard(number)
            if not self._by_topic[topic]:
                del self._by_topic[topic]
