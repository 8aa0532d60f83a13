"""The capacity of all nodes: one matrix of {allocatable, requested, held, returning}, in int64.

A pod requests few resources, and perhaps of all nodes: the amounts of one resource on all nodes are
adjacent in memory.

A node gets a row with its first Node object, pod or hold. A resource gets a column when a node
offers it; no pod can get a resource that no node offers. Each cell is written from an exact total,
so it never drifts, and is clamped instead of overflowing. A clamped cell still shows correctly that
there is no room. Only the exact totals show how much is lacking, or how much is left after a pod or
a hold ends (`amounts`, docs/adr/0015).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools, Ids
from reserver.cluster.headroom import CELL_MAX, Headroom, Int64s, clamped
from reserver.cluster.node import Topology

Rows = NDArray[np.intp]

Totals = Mapping[str, int]

ALLOCATABLE, REQUESTED, HELD, RETURNING = range(4)

_NO_ROW = -1
_LEAST_WIDTH = 8


class Amounts(NamedTuple):
    """One resource of one node, exactly: millicores of cpu, base units of other resources.

    Attributes:
        allocatable: amount that the node offers to pods.
        requested: amount that its pods request, including pods being bound.
        held: amount that active reservations hold, for any owner.
        returning: amount of pods that their reservations hold again once these pods end.
    """

    allocatable: int
    requested: int
    held: int
    returning: int = 0


class CapacityMatrix:
    """Rows of nodes, columns of resources, and the exact totals behind each cell.

    A row exists as long as its node has a Node object, pods or holds.

    Attributes:
        allocatable: int64 array, rows × columns, of the amounts that nodes offer to pods.
        requested: the same shape, of the requests of their pods, including pods being bound.
        held: the same shape, of the amounts that active reservations hold.
        has_holds: bool array, rows: an active reservation holds capacity on the node.
        guarded: bool array, rows: a reservation holds capacity on the node, or will hold it again
            once a pod ends.
        holding: the names of the guarded nodes.
        without_holds: the names of all other rows.
        headroom: room for pods next to the holds.
        exists: bool array, rows: the Node object is cached.
        whole: bool array, rows: the whole node is held, with all room that its pods leave.
        has_unreadable: bool array, rows: an object of the node cannot be read, so pods may take
            more, or the node may offer less, than is cached.
        unreadable_nodes: the names of these nodes, and of nodes without a row.
        columns: resource name to column; resources that no node offers any more may linger.
        layout: changes when the columns of resources change.
        topology: labels, taints and cordons of nodes, by row.
    """

    def __init__(self) -> None:
        """Begin without nodes."""
        self.columns: dict[str, int] = {}
        self.layout = 0
        self._offers: Counter[str] = Counter()
        self._row_of: dict[str, int] = {}
        self._names: list[str] = []
        self._free_rows: list[int] = []
        self._pods_on: dict[str, int] = {}
        self._totals: tuple[dict[str, Totals], ...] = ({}, {}, {}, {})
        self._cells: NDArray[np.int64] = np.zeros((4, 8, 64), dtype=np.int64)
        self.has_holds: Bools = np.zeros(64, dtype=np.bool_)
        self.guarded: Bools = np.zeros(64, dtype=np.bool_)
        self.holding: set[str] = set()
        self.without_holds: set[str] = set()
        self.exists: Bools = np.zeros(64, dtype=np.bool_)
        self.whole: Bools = np.zeros(64, dtype=np.bool_)
        self.headroom = Headroom(self.columns, self._cells, ~self.guarded)
        self.has_unreadable: Bools = np.zeros(64, dtype=np.bool_)
        self.unreadable_nodes: set[str] = set()
        self.topology = Topology(64)
        self._forks = WeakSet[CapacityMatrix]()

    @property
    def allocatable(self) -> Int64s:
        """Amounts that nodes offer to pods."""
        return self._layer(ALLOCATABLE)

    @property
    def requested(self) -> Int64s:
        """Amounts that the pods on the nodes request."""
        return self._layer(REQUESTED)

    @property
    def held(self) -> Int64s:
        """Amounts that active reservations hold."""
        return self._layer(HELD)

    @property
    def returning(self) -> Int64s:
        """Amounts of pods that their reservations hold again once these pods end."""
        return self._layer(RETURNING)

    def amounts(self, node: str, resource: str) -> Amounts:
        """Return one resource of a node; zeros for a node without a row."""
        return Amounts(*(totals.get(node, {}).get(resource, 0) for totals in self._totals))

    def row(self, name: str) -> int | None:
        """Return the row of a node, None without one."""
        return self._row_of.get(name)

    def rows(self, names: Sequence[str]) -> Rows:
        """Return the row of each name, -1 for a node without one."""
        return np.fromiter(self.each_row(names), dtype=np.intp, count=len(names))

    def each_row(self, names: Sequence[str]) -> Iterator[int]:
        """Yield the same rows as `rows`, looked up one by one."""
        return map(self._row_of.get, names, repeat(_NO_ROW))

    def name_of(self, row: int) -> str:
        """Return the name of the node of a row."""
        return self._names[row]

    def marked(self, rows: Rows | Ids) -> Bools:
        """Return a mask that is true at the given rows; -1 is ignored."""
        marked: Bools = np.zeros_like(self.exists)
        marked[rows[rows >= 0]] = True
        return marked

    def lacks(self, among: Bools) -> Iterator[tuple[str, str, int]]:
        """Yield each overcommitted node and resource, with the amount that pods and holds lack.

        All rows are compared at once, as they lie in memory: selecting rows first takes longer.
        Where a cell is clamped, the yielded amount is exact, and may be zero or less.

        Args:
            among: bool array, rows: the nodes to compare.
        """
        offered, requested, held, _ = self._cells[:, : len(self.columns)]
        free = offered - requested - held
        at = np.nonzero(((free < 0) | (offered == CELL_MAX)) & among)
        amounts = (abs(layer[at]) for layer in (offered, requested, held))
        is_clamped = np.max([*amounts], axis=0) == CELL_MAX
        resources = tuple(self.columns)  # In the order of their columns.
        cells = (*at, -free[at], is_clamped)
        for column, row, lack, is_inexact in zip(*(each.tolist() for each in cells), strict=True):
            node, name = self._names[row], resources[column]
            total = self.amounts(node, name) if is_inexact else None
            exact = total.requested + total.held - total.allocatable if total else lack
            yield node, name, exact

    def held_beyond_cells(self) -> list[str]:
        """Return the nodes whose holds exceed a cell, so that only exact sums tell what is free."""
        rows = np.flatnonzero((self._cells[HELD] == CELL_MAX).any(axis=0))
        return [self._names[row] for row in rows.tolist()]

    def _layer(self, layer: int) -> Int64s:
        cells: Int64s = self._cells[layer].T
        return cells

    def _set(self, layer: int, node: str, totals: Totals) -> None:
        changed = self._totals[layer].get(node, {}).keys() | totals.keys()
        # A resource that no node offers has no column; a tenant may hold thousands on one node.
        self._write(layer, node, totals, self.columns.keys() & changed)

    def _write(self, layer: int, node: str, totals: Totals, changed: Iterable[str]) -> None:
        row = self._ensure_row(node)
        columns = []
        for name in changed:
            column = self.columns.get(name)
            if column is not None:
                self._cells[layer, column, row] = clamped(totals.get(name, 0))
                columns.append(column)
        if layer >= HELD or self.guarded[row]:
            is_known = bool(self.exists[row]) or not self.guarded[row]
            is_known = is_known and not self.whole[row]
            self.headroom.put(row, columns, is_known=is_known)
        if totals:
            self._totals[layer][node] = totals
        else:
            self._totals[layer].pop(node, None)
            self._release_row(node)

    def _offer(self, before: Totals, after: Totals) -> None:
        """Replace the resources that a node offers, and give each new resource a column."""
        self._offers.update(after.keys() - before.keys())
        self._add_columns([name for name in after if name not in self.columns])
        for name in before.keys() - after.keys():
            self._offers[name] -= 1
            if not self._offers[name]:
                del self._offers[name]
        if len(self.columns) > _LEAST_WIDTH + 2 * len(self._offers):
            self._pack_columns()

    def _add_columns(self, names: Sequence[str]) -> None:
        for name in names:
            self.columns[name] = len(self.columns)
        width = self._cells.shape[1]
        if len(self.columns) > width:
            more = max(len(self.columns), 2 * width) - width
            self._cells = np.pad(self._cells, ((0, 0), (0, more), (0, 0)))
        for layer, totals_by_node in enumerate(self._totals if names else ()):
            for node, totals in totals_by_node.items():
                for name in totals.keys() & names:
                    cell = clamped(totals[name])
                    self._cells[layer, self.columns[name], self._row_of[node]] = cell
        if names:
            self._reset_headroom()

    def _pack_columns(self) -> None:
        """Drop the columns of resources that no node offers any more."""
        kept = [name for name in self.columns if name in self._offers]
        cells = self._cells[:, [self.columns[name] for name in kept]]
        spare = max(_LEAST_WIDTH, 2 * len(kept)) - len(kept)
        self._cells = np.pad(cells, ((0, 0), (0, spare), (0, 0)))
        self.columns = {name: column for column, name in enumerate(kept)}
        self._reset_headroom()
        self.layout += 1

    def _ensure_row(self, name: str) -> int:
        row = self._row_of.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
            self._grow_rows(row)
        self._row_of[name] = row
        self.without_holds.add(name)
        self.has_unreadable[row] = name in self.unreadable_nodes
        return row

    def _grow_rows(self, row: int) -> None:
        size = self._cells.shape[2]
        if row >= size:
            more = max(size // 4, 16)  # Each comparison scans all of them.
            for each in (self, *self._forks):
                each._pad_rows(more)  # noqa: SLF001 - a snapshot too
            self.topology.grow(size + more)

    def _pad_rows(self, more: int) -> None:
        self._cells = np.pad(self._cells, ((0, 0), (0, 0), (0, more)))
        self.has_holds = np.pad(self.has_holds, (0, more))
        self.guarded = np.pad(self.guarded, (0, more))
        self.exists = np.pad(self.exists, (0, more))
        self.whole = np.pad(self.whole, (0, more))
        self.has_unreadable = np.pad(self.has_unreadable, (0, more))
        self._reset_headroom()

    def _reset_headroom(self) -> None:
        """Drop the cached comparisons: rows or columns have changed."""
        self.headroom = Headroom(
            self.columns, self._cells, (self.exists | ~self.guarded) & ~self.whole
        )

    def _release_row(self, name: str) -> None:
        row = self._row_of[name]
        if not (self.exists[row] or self.guarded[row] or name in self._pods_on):
            del self._row_of[name]
            self.without_holds.discard(name)
            self._free_rows.append(row)

    def _detach(self) -> None:
        """Copy all amounts that are shared with another snapshot."""
        self.columns = dict(self.columns)
        self._row_of, self._names = dict(self._row_of), list(self._names)
        self._totals = tuple(map(dict, self._totals))
        self._cells = self._cells.copy()
        self.holding, self.without_holds = set(self.holding), set(self.without_holds)
        self.has_holds, self.guarded = self.has_holds.copy(), self.guarded.copy()
        self.exists, self.has_unreadable = self.exists.copy(), self.has_unreadable.copy()
        self.whole = self.whole.copy()
        self._forks = WeakSet()
        self._reset_headroom()
