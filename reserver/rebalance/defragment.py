"""Defragmentation: empties the most nodes with the fewest moves.

Node after node is emptied into the room that others have, in several orders; the best outcome
counts. Where more may be possible, the class model looks for it in time (docs/adr/0084).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.rebalance.improvement import improve
from reserver.rebalance.ordering import Order, Step, carry_out, interchangeable, order, take_back
from reserver.rebalance.packing import Packing, scarcity
from reserver.rebalance.plan import Bound, Kept, Plan, Why
from reserver.rebalance.plan_summary import plan_of
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.tabu_search import search
from reserver.rebalance.time_limit import TimeLimit

DEFRAGMENT = "Defragment"

STEPS = 60_000
"""Most places that the search tries; about five seconds for a thousand nodes."""

_FAILURES = 40
"""After so many nodes in a row that cannot be emptied, others are not tried."""

_PATIENCE = 150
_SHUFFLES = 40
_QUICK = 2
"""Orders that are tried without a tabu search first, so that an early end has a plan to show."""

_START_SHARE = 0.4
"""The share of the time for emptying node after node, if there is a limit."""

_NOISE = 0.3
_GOLDEN = 0.6180339887498949
_RETRIES = 10


class Emptying(NamedTuple):
    """The nodes that can be emptied, and how.

    Attributes:
        rows: of those nodes.
        goals: the row where each pod is to be that has to move.
    """

    rows: tuple[int, ...]
    goals: dict[int, int]


class _Field(NamedTuple):
    """The nodes that may be emptied.

    Attributes:
        rows: their rows.
        numbers: int64 array, by node: the pods that have to leave.
        costs: int64 array, nodes × columns: the room that the other nodes need for these pods.
        room: int64 array, columns: the room of all nodes.
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
    planned: PlanningSnapshot,
    *,
    limit: TimeLimit | None = None,
    chosen: frozenset[str] | None = None,
) -> Plan:
    """Return the plan that empties the most nodes with few moves.

    Args:
        planned: the cluster; as it is after all moves when this returns.
        limit: of the search; None for as many steps as it has, without the class model, so that
            the same cluster has the same plan.
        chosen: the nodes that may be emptied, by name; None for any.
    """
    may_empty = np.ones(len(planned.closed), dtype=np.bool_)
    if chosen is not None:
        may_empty[:] = False
        may_empty[[row for name in chosen if (row := planned.snapshot.row(name)) is not None]] = (
            True
        )
    closed = planned.closed.copy()
    field = _field(planned, may_empty)
    start = None if limit is None else limit.share(_START_SHARE)
    steps: Sequence[Step] = _feasible(planned, may_empty, field, start).steps
    empty = _emptied(planned, field)
    bound = Bound(field.fewest(len(empty)), field.most(), "counting what pods request")
    planned.closed[:] = closed
    if limit is not None and (len(steps), len(empty)) != bound[:2]:
        take_back(planned, steps)
        planned.closed |= ~_busy(planned)
        movable = planned.movable & ~planned.stays_behind
        steps, most, fewest = improve(planned, steps, movable, field.rows, limit)
        empty = _emptied(planned, field)
        bound = bound.tightened(fewest, most, "HiGHS")
    emptied = frozenset(empty)
    planned.closed[:] = closed
    return plan_of(
        planned,
        Order(tuple(steps), {}),
        lambda _, source: _why(planned.snapshot.name_of(source), is_emptied=source in emptied),
        kept=_kept(planned, may_empty, emptied),
        emptied=emptied,
        bound=bound,
    )


def _feasible(
    planned: PlanningSnapshot, may_empty: Bools, field: _Field, limit: TimeLimit | None
) -> Order:
    """Empty nodes in an order in which all pods have room in their turn.

    Within a time limit some pods may be stuck: their moves are saved later, and a search without
    their nodes may empty fewer.
    """
    can, may_empty = field, may_empty.copy()
    best, most = Order((), {}), 0
    for _ in range(_RETRIES):
        found = _emptying(planned, can, limit)
        steps = order(planned, found.goals, interchangeable(planned, found.goals))
        many = len(_emptied(planned, field))
        if not steps.stuck and many >= most:
            return steps
        take_back(planned, steps.steps)
        if limit is not None and many > most:
            best, most = steps, many
        if not steps.stuck or (limit is not None and limit.is_over):
            break
        at_fault = {int(planned.rows[number]) for number in steps.stuck} & set(found.rows)
        may_empty[list(at_fault or found.rows)] = False
        can = _field(planned, may_empty)
    carry_out(planned, best.steps)
    return best


def _emptied(planned: PlanningSnapshot, field: _Field) -> list[int]:
    """Return the rows of the nodes that are empty by now."""
    counted = planned.rows[~planned.stays_behind]
    return list(map(int, np.setdiff1d(field.rows, counted)))


def _emptying(planned: PlanningSnapshot, field: _Field, limit: TimeLimit | None) -> Emptying:
    """Return which nodes can be emptied with how few moves; the planning snapshot stays as it was.

    Args:
        field: what may be emptied.
        limit: of the search; one order is tried whatever the time.
    """
    closed = planned.closed.copy()
    most = field.most()
    best = Emptying((), {})
    planned.closed |= ~_busy(planned)  # What is empty is to stay so.
    packing = Packing(planned, planned.movable & ~planned.stays_behind, STEPS)
    orders = list(_orders(planned, field))
    tries = chain(((rows, 0) for rows in orders[:_QUICK]), ((rows, _PATIENCE) for rows in orders))
    for rows, patience in tries:
        found = _one_by_one(packing, rows, most, patience, limit)
        if (len(found), -packing.moved) > (len(best.rows), -len(best.goals)):
            best = Emptying(found, packing.goals())
        planned.closed[list(found)] = False
        packing.back(0)
        is_best = (len(best.rows), len(best.goals)) == (most, field.fewest(most))
        if packing.steps_left <= 0 or is_best or (limit and limit.is_over):
            break
    planned.closed[:] = closed
    return best


def _one_by_one(
    packing: Packing, waiting: list[int], most: int, patience: int, limit: TimeLimit | None
) -> tuple[int, ...]:
    """Empty one node after the other, until no further one can be."""
    found: list[int] = []
    has_changed = True
    while has_changed:
        has_changed, failures, left = False, 0, []
        for row in waiting:
            is_over = packing.steps_left <= 0 or (patience and limit and limit.is_over)
            if len(found) == most or is_over or failures >= _FAILURES:
                break
            if _empty(packing, row, patience):
                found.append(row)
                has_changed, failures = True, 0
            else:
                failures += 1
                left.append(row)
        waiting = left
    packing.settle_back()
    return tuple(found)


def _empty(packing: Packing, row: int, patience: int) -> bool:
    """Empty a node if its pods find other places."""
    planned, mark = packing.planned, packing.mark()
    there = planned.on(row)
    numbers = packing.by_size(there[~planned.stays_behind[there]])
    planned.closed[row] = True
    room = np.maximum(planned.free[~planned.closed], 0).sum(axis=0)
    if np.all(room >= planned.requests[numbers].sum(axis=0)):
        outside = []
        for number in numbers:
            if not packing.may_leave(number):
                break
            if not packing.insert(number):
                if not patience:
                    break
                packing.put(number, NOWHERE)
                outside.append(number)
        else:
            if not outside or search(packing, outside, patience):
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
    costs = np.bincount(planned.rows[leaving], planned.costs[leaving], len(largest))[rows]
    keys = (field.numbers.astype(np.float64), used[rows], node, largest[rows])
    keys = tuple(key / max(key.max(), 1e-9) for key in keys)
    for key in keys:
        yield rows[np.lexsort((rows, costs, key))].tolist()
    for shuffle in range(1, _SHUFFLES + 1):
        noise = (np.arange(1, len(rows) + 1) * _GOLDEN * shuffle) % 1.0
        key = keys[shuffle % len(keys)] * (1 - _NOISE) + noise * _NOISE
        yield rows[np.lexsort((rows, costs, key))].tolist()


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
