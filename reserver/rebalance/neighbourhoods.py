"""Chooses the nodes on which a plan is improved next: for more gain, or for fewer moves."""

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

_SHARE = 4
"""Of nodes that gain less dearly together, one in so many gains by now, and as many may."""


class Nearby(NamedTuple):
    """Some nodes.

    Attributes:
        inside: bool array, rows: which.
        target: the row that is to gain; `NOWHERE` for any of them.
    """

    inside: Bools
    target: int = NOWHERE


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

    def gaining(self, count: int) -> Nearby:
        """Return nodes with much room, and one that is to be emptied or to take a pod."""
        key, promising = self._with_much_room(), self._promising()
        if not len(promising):
            return Nearby(self._first(key, count))
        key[promising[0]] = -1.0
        return Nearby(self._first(key, count), int(promising[0]))

    def exchanging(self, count: int) -> Nearby:
        """Return nodes that gain by many moves, others that may gain, and some with much room."""
        key = self._with_much_room()
        left = np.bincount(self.homes[self._moved()], minlength=len(key))
        gaining = np.setdiff1d(self._gaining(), np.flatnonzero(left == 0))
        dear = gaining[np.argsort(-left[gaining] * (1 + self.drawn.random(len(gaining))))]
        few = max(count // _SHARE, 1)
        key[dear[:few]] = key[self._promising()[:few]] = -1.0
        return Nearby(self._first(key, count))

    def saving(self, count: int) -> Nearby:
        """Return nodes between which pods move, around one of those."""
        moved, size = self._moved(), len(self.planned.closed)
        near = np.zeros(size)
        if len(moved):
            between = np.zeros((size, size))
            np.add.at(between, (self.homes[moved], self.planned.rows[moved]), 1.0)
            between += between.T
            near[self.homes[self.drawn.choice(moved)]] = 1.0
            for _ in range(_FAR):
                near += between @ near / max(between.max(), 1.0)
        return Nearby(self._first(-near * (1 + self.drawn.random(size)), count))

    def any_nodes(self, count: int) -> Nearby:
        """Return any nodes."""
        return Nearby(self._first(self.drawn.random(len(self.planned.closed)), count))

    def _moved(self) -> Rows:
        """Return the pods that have left a node."""
        return np.flatnonzero((self.planned.rows != self.homes) & (self.homes != NOWHERE))

    def _gaining(self) -> Rows:
        """Return the nodes that are emptied, or to which pending pods go."""
        if len(self.can_empty):
            return np.setdiff1d(self.can_empty, self.planned.rows[self.movable])
        return np.setdiff1d(self.planned.rows[self.homes == NOWHERE], [NOWHERE])

    def _promising(self) -> Rows:
        """Return nodes that may gain, roughly those first where little is in the way."""
        if len(self.can_empty):
            load = self._load()
            rows = self.can_empty[load[self.can_empty] > 0]
            in_the_way = load[rows]
        else:
            rows, in_the_way = self._landing_places()
        ranks = _rank(in_the_way) + self.drawn.random(len(rows)) * _NOISE
        return rows[np.argsort(ranks)]

    def _landing_places(self) -> tuple[Rows, Floats]:
        """Return nodes that a pending pod may go to, and how little it lacks there."""
        planned = self.planned
        wanted_pods = self.movable & (self.homes == NOWHERE)
        pending = np.flatnonzero(wanted_pods & (planned.rows == NOWHERE))
        pending = pending if len(pending) else np.flatnonzero(wanted_pods)
        if not len(pending):
            return pending, np.zeros(0)
        number = int(self.drawn.choice(pending))
        wanted = planned.requests[number]
        moving = self.movable & (planned.rows != NOWHERE) & (self.homes != NOWHERE)
        most = planned.free.copy()
        np.add.at(most, planned.rows[moving], planned.requests[moving])
        may = planned.admits(number) & np.all((most >= wanted) | (wanted == 0), axis=1)
        rows = np.flatnonzero(may)
        return rows, np.maximum(wanted - planned.free[rows], 0) @ self.weights

    def _with_much_room(self) -> Floats:
        """Return a key by which nodes with much room come first, roughly, and emptied ones last."""
        key = _rank(np.maximum(self.planned.free, 0) @ -self.weights)
        key += self.drawn.random(len(key)) * _NOISE
        if len(self.can_empty):
            key[self._gaining()] += 1.0
        return key

    def _load(self) -> Floats:
        """Return, for each row, the total size of its movable pods."""
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
