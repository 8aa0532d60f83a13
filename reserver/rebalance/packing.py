"""Finding places on a planning snapshot: directly, or by making other pods go elsewhere (a chain).

A heuristic: a plan that it finds is right, and it may miss one. Its work is counted in steps
and bounded by them, so that the same planned gives the same places everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot

DEPTH = 2
"""Longest chain of pods that make way."""

_BREADTH = (0, 48, 12)
"""Most pods that are tried to make way, by the remaining length of the chain."""

Floats = NDArray[np.float64]


class Packing:
    """Pods on a planning snapshot, and how they got there.

    Attributes:
        planned: where they are; only this changes it.
        movable: bool array, pods: whether it may be moved.
        steps_left: how many more places may be tried.
    """

    def __init__(self, planned: PlanningSnapshot, movable: Bools, steps: int) -> None:
        """Begin with the pods where they are.

        Args:
            planned: where they are.
            movable: whether each may be moved.
            steps: how many places may be tried.
        """
        self.planned = planned
        self.movable = movable
        self.steps_left = steps
        self.home: Rows = planned.rows.copy()
        self._changes: list[tuple[int, int]] = []
        self._weights = scarcity(planned)
        self._sizes: Floats = planned.requests @ self._weights

    @property
    def moved(self) -> int:
        """The number of pods on another row than at first."""
        return int(np.count_nonzero((self.planned.rows != self.home) & (self.home != NOWHERE)))

    def goals(self) -> dict[int, int]:
        """Return where each pod is that is not where it was at first."""
        changed = np.flatnonzero(self.planned.rows != self.home)
        return {int(number): int(self.planned.rows[number]) for number in changed}

    def mark(self) -> int:
        """Return a mark to go back to."""
        return len(self._changes)

    def back(self, mark: int) -> None:
        """Undo all since a mark."""
        while len(self._changes) > mark:
            number, row = self._changes.pop()
            self._put(number, row)

    def by_size(self, numbers: Sequence[int] | Rows) -> list[int]:
        """Return pods, the largest first."""
        return sorted(map(int, numbers), key=lambda number: (-self._sizes[number], number))

    def size_of(self, numbers: Sequence[int]) -> float:
        """Return how much pods take together; a unit of a scarce resource counts more."""
        return float(self._sizes[list(numbers)].sum())

    def put(self, number: int, row: int) -> None:
        """Put a pod on the node of a row; it can be undone."""
        self._changes.append((number, int(self.planned.rows[number])))
        self._put(number, row)
        self.steps_left -= 1

    def may_leave(self, number: int) -> bool:
        """Return whether a pod may be moved, as far as budgets are concerned."""
        has_left = self.planned.rows[number] != self.home[number]
        return has_left or not self.planned.disruptions.refusal(self.planned.pods[number])

    def insert(self, number: int, depth: int = DEPTH) -> bool:
        """Find a pod a place; others may make way, `depth` of them one after the other."""
        rows = np.flatnonzero(self.planned.targets(number))
        if len(rows):
            self.put(number, self._tightest(rows))
            return True
        if depth == 0 or self.steps_left <= 0:
            return False
        may_go = self.planned.may_go(number)
        return any(
            self._instead_of(number, other, depth)
            for other in self._in_the_way(number, may_go, depth)
        )

    def settle_back(self) -> None:
        """Let pods go home that have room there now: each is a move less."""
        for number in self.by_size(np.flatnonzero(self.planned.rows != self.home)):
            home = int(self.home[number])
            if home != NOWHERE and self.planned.targets(number)[home]:
                self.put(number, home)

    def _instead_of(self, number: int, other: int, depth: int) -> bool:
        """Put a pod where another one is, which has to find another place."""
        if not self.may_leave(other):
            return False
        mark, row = self.mark(), int(self.planned.rows[other])
        self.put(other, NOWHERE)
        if self.planned.targets(number)[row]:
            self.put(number, row)
            if self.insert(other, depth - 1):
                return True
        self.back(mark)
        return False

    def _in_the_way(self, number: int, may_go: Bools, depth: int) -> Iterator[int]:
        """Yield pods whose place would be enough: first pods that have moved, and small pods."""
        planned = self.planned
        wanted = planned.requests[number]
        asked = np.flatnonzero(wanted)
        others = np.flatnonzero(self.movable & (planned.rows != NOWHERE))
        rows = planned.rows[others]
        fits = may_go[rows] & np.all(
            planned.free[np.ix_(rows, asked)] + planned.requests[np.ix_(others, asked)]
            >= wanted[asked],
            axis=1,
        )
        found = others[fits & (others != number)]
        found = found[self._sizes[found] < self._sizes[number]]
        is_first_move = planned.rows[found] == self.home[found]
        order = np.lexsort((found, planned.costs[found], self._sizes[found], is_first_move))
        for other in found[order[: _BREADTH[depth]]]:
            if self.steps_left <= 0:
                return
            yield int(other)

    def _put(self, number: int, row: int) -> None:
        home, pod = self.home[number], self.planned.pods[number]
        if home != NOWHERE and self.planned.rows[number] == home != row:
            self.planned.disruptions.spend(pod)
        elif home != NOWHERE and self.planned.rows[number] != home == row:
            self.planned.disruptions.give_back(pod)
        self.planned.put(number, row)

    def _tightest(self, rows: Rows) -> int:
        """Return the row on which least is left over."""
        left = self.planned.free[rows] @ self._weights
        return int(rows[np.argmin(left)])


def scarcity(planned: PlanningSnapshot) -> Floats:
    """Return the weight of one unit of each resource: the scarcer, the heavier."""
    exists = planned.snapshot.exists
    offered = planned.snapshot.allocatable[exists].sum(axis=0, dtype=np.float64)
    used = offered - np.maximum(planned.free[exists], 0).sum(axis=0, dtype=np.float64)
    share = np.divide(used, offered, out=np.zeros_like(offered), where=offered > 0)
    weights: Floats = np.divide(share, offered, out=np.zeros_like(offered), where=offered > 0)
    return weights
