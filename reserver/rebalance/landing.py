"""Room for a pending pod by as many moves as it takes: a tabu search from node after node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.rebalance.packing import Packing
from reserver.rebalance.planning_snapshot import NOWHERE
from reserver.rebalance.tabu_search import MOST_PAIRS, search
from reserver.rebalance.time_limit import TimeLimit

_PATIENCE = 150


def land(packing: Packing, numbers: Sequence[int], limit: TimeLimit) -> list[int]:
    """Give pods nodes, and others other places; return those that get none.

    Args:
        packing: where the pods are.
        numbers: pods on no node. Of those that are alike, none is tried after one got none.
        limit: of the search.
    """
    without = []
    failed = set[object]()
    for number in numbers:
        kind = packing.planned.kind(number)
        if kind in failed or not _land(packing, number, limit):
            without.append(number)
            failed.add(kind)
    return without


def _land(packing: Packing, number: int, limit: TimeLimit) -> bool:
    """Begin on the node that a pod overflows least, then on the next one."""
    planned = packing.planned
    if not planned.has_columns(number):
        return False
    rows = np.flatnonzero(planned.may_go(number))
    lacking = np.maximum(planned.requests[number] - planned.free[rows], 0)
    for row in rows[np.argsort(packing.worth(lacking), kind="stable")].tolist():
        if limit.is_over:
            return False
        mark = packing.mark()
        if search(packing, [number], _PATIENCE, among=_around(packing, row), first=row):
            return True
        packing.back(mark)
    return False


def _around(packing: Packing, row: int) -> Rows:
    """Return a row and others, those with most room, as many as a search takes on."""
    planned = packing.planned
    open_rows = np.flatnonzero(~planned.closed)
    there = planned.rows[packing.movable & (planned.rows != NOWHERE)]
    each = max(len(there) / max(len(open_rows), 1), 1.0)
    most = int((MOST_PAIRS / 2 / each) ** 0.5)
    if len(open_rows) <= most:
        return open_rows
    room = packing.worth(np.maximum(planned.free[open_rows], 0))
    room[open_rows == row] = np.inf
    return np.sort(open_rows[np.argsort(-room, kind="stable")[:most]])
