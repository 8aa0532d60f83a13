"""Concessions: the amounts of holds that pods of a priority may take, on all nodes at once.

These are preemptible holds below the priority, and lent holds. Pods have few priorities, and few
nodes change between two calls: so the amounts are cached, and computed again for changed nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from cachetools import LRUCache

from reserver.cluster.headroom import Int64s, clamped
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref

_MOST_BYTES = 16 * 2**20

_Yielding = Callable[[int, Container[Ref], Iterable[str]], Mapping[str, Mapping[str, int]]]
"""Returns the amounts of holds that pods of a priority may take on some nodes (`NodeHolds`)."""


@dataclass(slots=True)
class _Found:
    """The amounts that pods of one priority may take.

    Attributes:
        cells: int64 array, columns × rows.
        stale: the rows to compute again.
    """

    cells: Int64s
    stale: set[int] = field(default_factory=set)


class Concessions:
    """The held room of others that pods may take, by their priority."""

    def __init__(self, snapshot: Snapshot, yielding: _Yielding, nodes: Collection[str]) -> None:
        """Begin with an empty cache.

        Args:
            snapshot: capacity and loans.
            yielding: computes the amounts that holds yield.
            nodes: the nodes with yielding holds, kept up to date by the caller.
        """
        self._snapshot = snapshot
        self._yielding = yielding
        self._nodes = nodes
        self._shape = (0, 0, 0)
        self._changed: set[int] = set()  # Rows, for all priorities.
        self._found: LRUCache[tuple[int, bool], _Found]
        self._found = LRUCache(_MOST_BYTES, lambda each: each.cells.nbytes)
        snapshot.lending.on_change = self.changed

    def changed(self, node: str) -> None:
        """Mark a node's row as stale."""
        row = self._snapshot.row(node)
        if row is not None:
            self._changed.add(row)

    def of(self, priority: int, now: float, *, borrows: bool) -> Int64s | None:
        """Return the amounts that pods may take: int64, columns × rows; None if nothing.

        Args:
            priority: the pods' priority.
            now: unix seconds.
            borrows: whether the pods may also borrow.
        """
        snapshot, lenders = self._snapshot, self._snapshot.lending.lenders() if borrows else ()
        if not (self._nodes or lenders):
            return None
        snapshot.lending.reopen(now)
        shape = (snapshot.layout, len(snapshot.columns), len(snapshot.exists))
        if shape != self._shape:
            self._found.clear()
            self._shape = shape
        if self._changed:
            for each in self._found.values():
                each.stale |= self._changed
            self._changed.clear()
        found = self._found.get((priority, borrows))
        if found is None:
            rows = snapshot.rows([*{*self._nodes, *lenders}])
            found = _Found(np.zeros(shape[1:], dtype=np.int64), set(rows[rows >= 0].tolist()))
            if found.cells.nbytes <= _MOST_BYTES:
                self._found[priority, borrows] = found
        if found.stale:
            self._compute(found, priority, now if borrows else None)
        return found.cells

    def _compute(self, found: _Found, priority: int, now: float | None) -> None:
        snapshot, stale = self._snapshot, sorted(found.stale)
        found.stale.clear()
        found.cells[:, stale] = 0
        names = map(snapshot.name_of, stale)  # Also of rows without a node.
        rows = {
            name: row for name, row in zip(names, stale, strict=True) if snapshot.row(name) == row
        }
        lent = {} if now is None else snapshot.lending.left(priority, rows, now)
        for each in (self._yielding(priority, (), rows), lent):
            _add(found.cells, each, rows, snapshot.columns)


def _add(
    cells: Int64s,
    amounts: Mapping[str, Mapping[str, int]],
    rows: Mapping[str, int],
    columns: Mapping[str, int],
) -> None:
    """Add amounts by node and resource, a whole column at once."""
    found: dict[int, tuple[list[int], list[int]]] = {}
    for node, totals in amounts.items():
        row = rows[node]
        for name, amount in totals.items():
            column = columns.get(name)
            if column is not None:
                at, adding = found.setdefault(column, ([], []))
                at.append(row)
                adding.append(clamped(amount))
    for column, (at, adding) in found.items():
        cells[column, at] += adding
