"""Room for pods next to the holds, on all nodes at once.

Many pods have equal requests, and few nodes change between two calls. So the nodes where a request
fits are cached, and only the nodes that have changed are compared again (docs/adr/0056).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.byte_cache import reckoned
from reserver.cluster.categorical import Bools

Int64s = NDArray[np.int64]

CELL_MAX = 2**60
"""Clamp for one cell; allocatable − requested − held then stays within int64."""

ANYTHING = CELL_MAX
"""Room without limit: no request exceeds it, as amounts are clamped as well."""

_MOST_BYTES = 2**20
"""Bound on the cached comparisons, in bytes; a full cache is cleared."""

_MOST_CHANGES = 1024
_FEW = 16
"""Most rows compared one by one, at half a microsecond each; comparing all rows takes about ten."""

_Key = tuple[tuple[str, int], ...]
_Asked = tuple[tuple[int, int], ...]
"""Columns of resources, each with a clamped amount of it."""


@dataclass(slots=True)
class _Found:
    """The nodes where the requests of a pod fit.

    Attributes:
        asked: the requests.
        fits: bool array, rows.
        shown: a read-only view of `fits`.
        seen: number of changes at the last comparison.
    """

    asked: _Asked
    fits: Bools
    shown: Bools
    seen: int


class Headroom:
    """Room for pods next to the holds, with the cached comparisons of requests."""

    def __init__(self, columns: Mapping[str, int], layers: Int64s, known: Bools) -> None:
        """Begin with the amounts of all nodes.

        Args:
            columns: columns of resources, which stay the same.
            layers: int64 array, {allocatable, requested, held, returning} × columns × rows; `put`
                reads it.
            known: bool array, rows: the Node object is cached, or the node is not guarded; false
                for a node that is held whole.
        """
        self._columns = columns
        self._layers = layers
        self._cells = _left(layers)
        self._known = known
        self._changed: list[int] = []
        self._found: dict[_Key, _Found] = {}
        self._bytes = 0

    def of(self, column: int) -> Int64s:
        """Return the amount of a resource that a pod may request, for each row.

        This is allocatable − requested − held, and `ANYTHING` where no amount is guarded.
        """
        found: Int64s = self._cells[column]
        return found

    def put(self, row: int, columns: Iterable[int], *, is_known: bool) -> None:
        """Update a node that has changed.

        Args:
            row: row of the node.
            columns: columns of the resources that have changed.
            is_known: the Node object is cached, or the node is not guarded; and the node is not
                held whole.
        """
        amount = self._layers.item
        for column in columns:
            held = amount(2, column, row)
            left = amount(0, column, row) - amount(1, column, row) - held
            is_guarded = held > 0 or amount(3, column, row) > 0
            self._cells[column, row] = left if is_guarded else ANYTHING
        self._known[row] = is_known
        self._changed.append(row)
        if len(self._changed) > _MOST_CHANGES:
            self._forget()

    def _forget(self) -> None:
        """Drop the cached comparisons; the next call of each request compares all nodes."""
        self._changed, self._found, self._bytes = [], {}, 0

    def fits(self, requests: Mapping[str, int]) -> Bools:
        """Return, for each row, whether a pod's requests fit now; the array is read-only.

        A resource that no node offers is not compared: kube-scheduler refuses it anyway.
        """
        key = tuple(requests.items())
        found = self._found.get(key)
        if found is None:
            found = self._remembered(key, requests)
        elif found.seen != len(self._changed):
            self._compare_again(found)
        return found.shown

    def _remembered(self, key: _Key, requests: Mapping[str, int]) -> _Found:
        size = self._known.nbytes + reckoned(sum(map(len, requests)))
        if size > _MOST_BYTES:
            return self._compared(requests)
        if self._bytes + size > _MOST_BYTES:
            self._forget()
        found = self._found[key] = self._compared(requests)
        self._bytes += size
        return found

    def _compared(self, requests: Mapping[str, int]) -> _Found:
        columns = self._columns
        amounts = ((columns[name], n) for name, n in requests.items() if n and name in columns)
        asked = tuple((column, clamped(amount)) for column, amount in amounts)
        fits = self._everywhere(asked)
        shown = fits.view()
        shown.flags.writeable = False
        return _Found(asked, fits, shown, len(self._changed))

    def _everywhere(self, asked: _Asked) -> Bools:
        fits = self._known.copy()
        for column, amount in asked:
            fits &= self._cells[column] >= amount
        return fits

    def _compare_again(self, found: _Found) -> None:
        changed = self._changed[found.seen :]
        found.seen = len(self._changed)
        if len(changed) > _FEW:
            found.fits[:] = self._everywhere(found.asked)
            return
        cell = self._cells.item
        for row in changed:
            fits = self._known[row]
            for column, amount in found.asked:
                fits = fits and cell(column, row) >= amount
            found.fits[row] = fits


def clamped(total: int) -> int:
    """Return a total within the bounds of a cell."""
    return max(-CELL_MAX, min(total, CELL_MAX))


def _left(layers: Int64s) -> Int64s:
    allocatable, requested, held, returning = layers
    is_guarded = (held > 0) | (returning > 0)
    left: Int64s = np.where(is_guarded, allocatable - requested - held, ANYTHING)
    return left
