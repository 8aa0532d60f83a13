"""Which nodes a plan is bettered on next: some that may gain, or some whose moves may be saved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.packing import Floats
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot

_NOISE = 0.5
_FAR = 2
"""From the node that is drawn to the farthest ones around it: so many moves."""


class Neighbourhoods(NamedTuple):
    """The nodes of a plan.

    Attributes:
        planned: where pods are by the plan.
        homes: the row of each pod at first.
        movable: bool array, pods: whether it may be moved, or is to land.
        can_empty: rows; each is a gain if none of those pods is there.
        sizes: of the pods.
        weights: of a unit of each resource.
        drawn: chance.
    """

    planned: PlanningSnapshot
    homes: Rows
    movable: Bools
    can_empty: Rows
    sizes: Floats
    weights: Floats
    drawn: np.random.Generator

    def gaining(self, count: int) -> Bools:
        """Return nodes with much room, and one that may be emptied or that may take a pod."""
        planned = self.planned
        load = self._load()
        key = _rank(np.maximum(planned.free, 0) @ -self.weights)
        key += self.drawn.random(len(key)) * _NOISE
        key[self.can_empty[load[self.can_empty] == 0]] += 1.0  # Emptied: a gain to be lost.
        if len(self.can_empty):
            promising = self.can_empty[load[self.can_empty] > 0]
            ranks = _rank(load[promising])
        else:
            promising, ranks = self._landing_places()
        if len(promising):
            ranks = ranks + self.drawn.random(len(ranks)) * _NOISE
            key[promising[np.argmin(ranks)]] = -1.0
        return self._first(key, count)

    def saving(self, count: int) -> Bools:
        """Return nodes between which pods move, around one of those."""
        moved = np.flatnonzero((self.planned.rows != self.homes) & (self.homes != NOWHERE))
        size = len(self.planned.closed)
        near = np.zeros(size)
        if len(moved):
            between = np.zeros((size, size))
            np.add.at(between, (self.homes[moved], self.planned.rows[moved]), 1.0)
            between += between.T
            near[self.homes[self.drawn.choice(moved)]] = 1.0
            for _ in range(_FAR):
                near += between @ near / max(between.max(), 1.0)
        return self._first(-near * (1 + self.drawn.random(size)), count)

    def any_nodes(self, count: int) -> Bools:
        """Return any nodes."""
        return self._first(self.drawn.random(len(self.planned.closed)), count)

    def _landing_places(self) -> tuple[Rows, Floats]:
        """Return nodes that a pending pod may go to, and how little it lacks there."""
        planned = self.planned
        pending = np.flatnonzero(self.movable & (planned.rows == NOWHERE))
        if not len(pending):
            return pending, np.zeros(0)
        number = int(self.drawn.choice(pending))
        rows = np.flatnonzero(planned.admits(number))
        lacking = np.maximum(planned.requests[number] - planned.free[rows], 0)
        return rows, _rank(lacking @ self.weights)

    def _load(self) -> Floats:
        """Return, for each row, what the pods on it are that may be moved."""
        there = self.movable & (self.planned.rows != NOWHERE)
        load = np.zeros(len(self.planned.closed))
        np.add.at(load, self.planned.rows[there], self.sizes[there])
        return load

    def _first(self, key: Floats, count: int) -> Bools:
        """Return the open rows with the lowest keys."""
        rows = np.flatnonzero(~self.planned.closed)
        inside = np.zeros(len(key), dtype=np.bool_)
        inside[rows[np.argsort(key[rows], kind="stable")[:count]]] = True
        return inside


def _rank(values: Floats) -> Floats:
    """Return the place of each value in ascending order, from 0 to 1."""
    ranks: Floats = np.argsort(np.argsort(values, kind="stable")) / max(len(values), 1)
    return ranks
