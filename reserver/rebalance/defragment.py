"""Defragmentation: empties the most nodes with the fewest moves.

Node after node is emptied into the room that others have, in several orders; the best outcome
counts. docs/adr/0031 has how far that is from the best that there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.rebalance.ordering import Order, order, take_back
from reserver.rebalance.packing import Packing, scarcity
from reserver.rebalance.plan import Bound, Kept, Plan, Why
from reserver.rebalance.plan_summary import plan_of
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.solver import solve
from reserver.rebalance.tabu_search import search

DEFRAGMENT = "Defragment"

STEPS = 60_000
"""How many places are tried; about five seconds for a thousand nodes."""

_FAILURES = 40
"""After so many nodes in a row that cannot be emptied, others are not tried."""

_PATIENCE = 150
_SHUFFLES = 40
_NOISE = 0.3
_GOLDEN = 0.6180339887498949
_RETRIES = 10


class Emptying(NamedTuple):
    """The nodes that can be emptied, and how.

    Attributes:
        rows: of those nodes.
        goals: the row where each pod is to be that has to move.
        most: no plan empties more nodes.
        fewest: no plan that empties as many has fewer moves.
    """

    rows: tuple[int, ...]
    goals: dict[int, int]
    most: int
    fewest: int


class _Field(NamedTuple):
    """What may be emptied.

    Attributes:
        rows: the rows of nodes that may be.
        numbers: int64 array, one for each of those: how many pods have to leave it.
        costs: int64 array, those × columns: what the other nodes have to have for it.
        room: int64 array, columns: what all nodes have.
    """

    rows: Rows
    numbers: Int64s
    costs: Int64s
    room: Int64s

    def most(self) -> int:
        """Return how many nodes can be emptied at most: for each resource by itself."""
        fits = np.all(np.cumsum(np.sort(self.costs, axis=0), axis=0) <= self.room, axis=1)
        return int(np.count_nonzero(fits))

    def fewest(self, count: int) -> int:
        """Return how many pods have to leave so many nodes at least."""
        return int(np.sort(self.numbers)[:count].sum())


def defragment(
    planned: PlanningSnapshot, *, seconds: float = 0.0, chosen: frozenset[str] | None = None
) -> Plan:
    """Return the plan that empties the most nodes with few moves.

    Args:
        planned: the cluster; as it is after all moves when this returns.
        seconds: how long a solver may look for a better one; 0 for not at all.
        chosen: the nodes that may be emptied, by name; None for any.
    """
    may_empty = np.ones(len(planned.closed), dtype=np.bool_)
    if chosen is not None:
        may_empty[:] = False
        may_empty[[row for name in chosen if (row := planned.snapshot.row(name)) is not None]] = (
            True
        )
    closed = planned.closed.copy()
    found, steps = _feasible(planned, may_empty)
    bound = Bound(found.fewest, found.most, "counting what pods request")
    if seconds > 0:
        found, steps, bound = _solved(planned, found, steps, bound, seconds, closed)
    emptied = frozenset(found.rows)
    planned.closed[:] = closed
    return plan_of(
        planned,
        steps,
        lambda _, source: _why(planned.snapshot.name_of(source), is_emptied=source in emptied),
        kept=_kept(planned, may_empty, emptied),
        emptied=emptied,
        bound=bound,
    )


def _feasible(planned: PlanningSnapshot, may_empty: Bools) -> tuple[Emptying, Order]:
    """Return what can be emptied in an order in which all pods have room in their turn."""
    closed = planned.closed.copy()
    may_empty = may_empty.copy()
    for _ in range(_RETRIES):
        found = emptied(planned, may_empty)
        planned.closed[list(found.rows)] = True
        steps = order(planned, found.goals)
        if not steps.stuck:
            break
        take_back(planned, steps)
        planned.closed[:] = closed
        at_fault = {int(planned.rows[number]) for number in steps.stuck} & set(found.rows)
        may_empty[list(at_fault or found.rows)] = False
    else:
        found, steps = Emptying((), {}, found.most, 0), Order((), {})
    return found, steps


def _solved(
    planned: PlanningSnapshot,
    found: Emptying,
    steps: Order,
    bound: Bound,
    seconds: float,
    closed: Bools,
) -> tuple[Emptying, Order, Bound]:
    """Return what a solver finds if it is better, and what it has proved."""
    take_back(planned, steps)
    planned.closed[:] = closed
    movable = planned.movable & ~planned.stays_behind
    field = _field(planned, np.ones(len(closed), dtype=np.bool_))
    can_empty = np.zeros(len(closed), dtype=np.bool_)
    can_empty[field.rows] = True
    planned.closed |= ~_busy(planned)
    solved = solve(planned, movable, can_empty, seconds)
    if solved is not None:
        better = (len(solved.emptied), -len(solved.goals)) > (len(found.rows), -len(found.goals))
        bound = Bound(solved.fewest, solved.most, "HiGHS")
        if better:
            planned.closed[list(solved.emptied)] = True
            trial = order(planned, solved.goals)
            if not trial.stuck:
                best = Emptying(solved.emptied, solved.goals, solved.most, solved.fewest or 0)
                return best, trial, bound
            take_back(planned, trial)
    planned.closed[:] = closed
    return found, order(planned, found.goals), bound


def emptied(planned: PlanningSnapshot, may_empty: Bools, steps: int = STEPS) -> Emptying:
    """Return which nodes can be emptied with how few moves; the planning snapshot stays as it was.

    Args:
        may_empty: bool array, rows: whether it may be emptied.
        steps: how many places may be tried.
    """
    closed = planned.closed.copy()
    field = _field(planned, may_empty)
    most = field.most()
    best = Emptying((), {}, most, 0)
    planned.closed |= ~_busy(planned)  # What is empty is to stay so.
    packing = Packing(planned, planned.movable & ~planned.stays_behind, steps)
    for rows in _orders(planned, field):
        found = _one_by_one(packing, rows, planned.stays_behind, most)
        if (len(found), -packing.moved) > (len(best.rows), -len(best.goals)):
            best = Emptying(found, packing.goals(), most, field.fewest(len(found)))
        planned.closed[list(found)] = False
        packing.back(0)
        if packing.steps_left <= 0 or (len(best.rows), len(best.goals)) == (most, best.fewest):
            break
    planned.closed[:] = closed
    return best


def _one_by_one(
    packing: Packing, waiting: list[int], stays_behind: Bools, most: int
) -> tuple[int, ...]:
    """Empty one node after the other, until no further one can be."""
    found: list[int] = []
    has_changed = True
    while has_changed:
        has_changed, failures, left = False, 0, []
        for row in waiting:
            if len(found) == most or packing.steps_left <= 0 or failures >= _FAILURES:
                break
            if _empty(packing, row, stays_behind):
                found.append(row)
                has_changed, failures = True, 0
            else:
                failures += 1
                left.append(row)
        waiting = left
    packing.settle_back()
    return tuple(found)


def _empty(packing: Packing, row: int, stays_behind: Bools) -> bool:
    """Empty a node if its pods find other places."""
    planned, mark = packing.planned, packing.mark()
    there = planned.on(row)
    numbers = packing.by_size(there[~stays_behind[there]])
    planned.closed[row] = True
    room = np.maximum(planned.free[~planned.closed], 0).sum(axis=0)
    if np.all(room >= planned.requests[numbers].sum(axis=0)):
        outside = []
        for number in numbers:
            if not packing.may_leave(number):
                break
            if not packing.insert(number):
                packing.put(number, NOWHERE)
                outside.append(number)
        else:
            if not outside or search(packing, outside, _PATIENCE):
                return True
    packing.back(mark)
    planned.closed[row] = False
    return False


def _busy(planned: PlanningSnapshot) -> Bools:
    """Return, for each row, whether a pod is there without which it would be empty."""
    counted = planned.rows[(planned.rows != NOWHERE) & ~planned.stays_behind]
    return np.bincount(counted, minlength=len(planned.closed)) > 0


def _field(planned: PlanningSnapshot, may_empty: Bools) -> _Field:
    size = len(planned.closed)
    counted = (planned.rows != NOWHERE) & ~planned.stays_behind
    stuck = np.bincount(planned.rows[counted & ~planned.movable], minlength=size) > 0
    can = may_empty & _busy(planned) & ~stuck & ~planned.closed & ~planned.snapshot.has_holds
    rows = np.flatnonzero(can)
    leaving = counted & np.isin(planned.rows, rows)
    sums = np.zeros_like(planned.free)
    np.add.at(sums, planned.rows[leaving], planned.requests[leaving])
    return _Field(
        rows=rows,
        numbers=np.bincount(planned.rows[leaving], minlength=size)[rows],
        costs=np.maximum(planned.free[rows], 0) + sums[rows],
        room=np.maximum(planned.free[~planned.closed & _busy(planned)], 0).sum(axis=0),
    )


def _orders(planned: PlanningSnapshot, field: _Field) -> Iterator[list[int]]:
    """Yield orders in which nodes are emptied: by what makes it cheap, then more and more mixed."""
    rows = field.rows
    if not len(rows):
        return
    weights = scarcity(planned)
    sizes = planned.requests @ weights
    leaving = np.flatnonzero((planned.rows != NOWHERE) & ~planned.stays_behind)
    largest = np.zeros(len(planned.closed))
    np.maximum.at(largest, planned.rows[leaving], sizes[leaving])
    used = np.bincount(planned.rows[leaving], weights=sizes[leaving], minlength=len(largest))
    node = planned.snapshot.allocatable[rows] @ weights
    keys = (field.numbers.astype(np.float64), used[rows], node, largest[rows])
    keys = tuple(key / max(key.max(), 1e-9) for key in keys)
    for key in keys:
        yield rows[np.lexsort((rows, key))].tolist()
    for shuffle in range(1, _SHUFFLES + 1):
        noise = (np.arange(1, len(rows) + 1) * _GOLDEN * shuffle) % 1.0
        key = keys[shuffle % len(keys)] * (1 - _NOISE) + noise * _NOISE
        yield rows[np.lexsort((rows, key))].tolist()


def _why(node: str, *, is_emptied: bool) -> Why:
    if is_emptied:
        return Why(DEFRAGMENT, reason=f"{node} is emptied", improves=f"{node} is not needed")
    reason = f"makes room on {node} for a pod of a node that is emptied"
    return Why(DEFRAGMENT, reason=reason, improves="a node is not needed")


def _kept(planned: PlanningSnapshot, may_empty: Bools, emptied: frozenset[int]) -> Iterator[Kept]:
    """Yield the pods that alone keep nodes from being emptied, as far as that is known."""
    for number, why in planned.protected.items():
        row = int(planned.rows[number])
        if row not in emptied and may_empty[row] and not planned.stays_behind[number]:
            node = planned.snapshot.name_of(row)
            yield Kept(pod=planned.pods[number].name, node=node, strategy=DEFRAGMENT, why=why)
