"""A search for the last places on nodes that have just enough room.

Pods without a place are put where they overflow least. Then, repeatedly, a pod of the node with the
most overflow moves or changes places with another pod, whichever leaves the least overflow, until
no overflow is left. A pod does not return to a node that it has just left (tabu search).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.packing import Packing
from reserver.rebalance.planning_snapshot import NOWHERE

MOST_PAIRS = 200_000
"""Pods × nodes with more of them are not searched: it would take too long."""

_REST = 8
_MOVE_COST = 0.002
"""The cost of one more moved pod, as a share of a node."""
_NOTHING = 1e-9

Floats = NDArray[np.float64]


def search(packing: Packing, outside: Sequence[int], patience: int) -> bool:
    """Find places for pods without one; any number of others may move.

    Args:
        packing: the places of the pods.
        outside: the pods without a place.
        patience: the most changes of place.

    Returns:
        Whether all pods have places. If not, the caller goes back to a mark.
    """
    planned = packing.planned
    rows = np.flatnonzero(~planned.closed)
    inside = np.flatnonzero(
        packing.movable & (planned.rows != NOWHERE) & ~planned.closed[planned.rows]
    )
    inside = np.array([n for n in inside if packing.may_leave(int(n))], dtype=np.intp)
    numbers = np.concatenate((inside, np.array(outside, dtype=np.intp)))
    if len(numbers) * len(rows) > MOST_PAIRS:
        return False
    search = _Search(packing, numbers, rows)
    packing.steps_left -= patience // 10
    found = search.run(patience)
    return found and _settle(packing, numbers, rows[search.at])


def _settle(packing: Packing, numbers: Rows, rows: Rows) -> bool:
    """Put pods where the search has them; return whether all may be there."""
    planned = packing.planned
    changed = np.flatnonzero(planned.rows[numbers] != rows)
    waiting = dict(zip(numbers[changed].tolist(), rows[changed].tolist(), strict=True))
    for number in waiting:
        if not packing.may_leave(number):
            return False
        if planned.rows[number] != NOWHERE:
            packing.put(number, NOWHERE)
    has_changed = True
    while waiting and has_changed:  # Some wait for the company of others.
        has_changed = False
        for number, row in list(waiting.items()):
            if planned.targets(number)[row]:
                packing.put(number, row)
                del waiting[number]
                has_changed = True
    return not waiting


class _Search:
    """Pods on nodes that may be too full.

    Attributes:
        at: the index of the node of each pod.
    """

    def __init__(self, packing: Packing, numbers: Rows, rows: Rows) -> None:
        planned = packing.planned
        requests = planned.requests[numbers]
        columns = np.flatnonzero(requests.any(axis=0))
        wanted = requests[:, columns].astype(np.float64)
        index_of = np.full(len(planned.closed) + 1, NOWHERE)
        index_of[rows] = np.arange(len(rows))
        self.at = index_of[planned.rows[numbers]]
        self._home = index_of[packing.home[numbers]]
        capacity = planned.free[np.ix_(rows, columns)].astype(np.float64)
        there = self.at != NOWHERE
        np.add.at(capacity, self.at[there], wanted[there])
        scale = np.maximum(capacity.mean(axis=0), 1.0)
        self._wanted, self._room = wanted / scale, np.maximum(capacity, 0) / scale
        self._may: Bools = np.array([planned.may_go(int(number))[rows] for number in numbers])
        self._may[np.flatnonzero(there), self.at[there]] = True
        np.add.at(self._room, self.at[there], -self._wanted[there])  # What is left, below 0 too.
        self._rested = np.zeros(self._may.shape, dtype=np.int64)

    def run(self, patience: int) -> bool:
        """Search; return whether nothing overflows any more."""
        for pod in np.flatnonzero(self.at == NOWHERE):
            costs = _overflow(self._room - self._wanted[pod]) - _overflow(self._room)
            costs = np.where(self._may[pod], costs, np.inf)
            node = int(np.argmin(costs))
            if not np.isfinite(costs[node]):
                return False
            self._go(int(pod), node)
        for turn in range(patience):
            over = _overflow(self._room)
            node = int(np.argmax(over))
            if over[node] <= _NOTHING:
                return True
            if not self._step(node, over, turn):
                return False
        return bool(_overflow(self._room).max() <= _NOTHING)

    def _step(self, node: int, over: Floats, turn: int) -> bool:
        """Make the change that leaves the least overflow; return False if there is none."""
        pods = np.flatnonzero(self.at == node)
        wanted, room = self._wanted[pods], self._room
        after = _overflow(room[node] + wanted)[:, None] - over[node]
        shifts = after + _overflow(room - wanted[:, None]) - over + self._costs(pods)
        resting = self._rested[pods] > turn
        shifts[~self._may[pods] | resting] = np.inf
        shifts[:, node] = np.inf
        others = np.flatnonzero(self.at != node)
        theirs = self._wanted[others]
        gains = wanted[:, None] - theirs
        swaps = _overflow(room[node] + gains) - over[node]
        swaps += _overflow(room[self.at[others]] - gains) - over[self.at[others]]
        swaps += self._costs(pods)[:, self.at[others]] + self._costs(others)[:, node]
        swaps[~self._may[np.ix_(pods, self.at[others])] | resting[:, self.at[others]]] = np.inf
        swaps[:, ~self._may[others, node] | (self._rested[others, node] > turn)] = np.inf
        if min(shifts.min(), swaps.min(initial=np.inf)) == np.inf:
            return False
        if shifts.min() <= swaps.min(initial=np.inf):
            pod, target = np.unravel_index(np.argmin(shifts), shifts.shape)
            self._leave(int(pods[pod]), int(target), turn)
        else:
            pod, other = np.unravel_index(np.argmin(swaps), swaps.shape)
            target = self.at[others[other]]
            self._leave(int(pods[pod]), int(target), turn)
            self._leave(int(others[other]), node, turn)
        return True

    def _costs(self, pods: Rows) -> Floats:
        """Return, for pods × nodes, how many more pods are away from home once a pod is there."""
        homes = self._home[pods][:, None]
        away = (homes != np.arange(len(self._room))) & (homes != NOWHERE)
        was_away = (homes != self.at[pods][:, None]) & (homes != NOWHERE)
        costs: Floats = _MOVE_COST * (away.astype(np.float64) - was_away)
        return costs

    def _leave(self, pod: int, node: int, turn: int) -> None:
        self._rested[pod, self.at[pod]] = turn + _REST + turn % 5
        self._go(pod, node)

    def _go(self, pod: int, node: int) -> None:
        if self.at[pod] != NOWHERE:
            self._room[self.at[pod]] += self._wanted[pod]
        self._room[node] -= self._wanted[pod]
        self.at[pod] = node


def _overflow(room: Floats) -> Floats:
    """Return by how much rooms are exceeded, over all resources."""
    exceeded: Floats = -np.minimum(room, 0.0).sum(axis=-1)
    return exceeded
