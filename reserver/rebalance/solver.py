"""The fewest moves, proved: an integer program, which HiGHS solves if it is installed.

It knows what pods request and on which nodes each may be as things stand. It does not know that
where a pod may be can depend on others, nor in which order pods can move: others check that. What
it proves about the fewest moves holds where no pod depends on others.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot

MOST_VARIABLES = 100_000
"""A program with more of them is not solved: reading it alone would take too long."""

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
_HALF, _SLACK = 0.5, 1e-6


class Solved(NamedTuple):
    """The result of a solver within its time.

    Attributes:
        goals: the row where each pod is to be that has to move, or that is to get a node.
        emptied: rows whose nodes are empty then.
        most: no plan empties more nodes.
        fewest: no plan that empties so many has fewer moves; None if this one does not.
    """

    goals: dict[int, int]
    emptied: tuple[int, ...]
    most: int
    fewest: int | None


class _Program(NamedTuple):
    """Which pod is on which row: a variable for each pair, then one for each row that is empty.

    Attributes:
        costs: of each variable.
        upper: the largest value of each variable; 0 where a pod may not be, or a row is in use.
        starts: where the entries of each variable begin.
        entries: the constraint of each.
        values: of each entry.
        least: of each constraint.
        most: of each constraint.
    """

    costs: Floats
    upper: Floats
    starts: Int32s
    entries: Int32s
    values: Floats
    least: Floats
    most: Floats


def is_installed() -> bool:
    """Return whether there is a solver (the extra `solver`)."""
    return find_spec("highspy") is not None


def solve(
    planned: PlanningSnapshot, movable: Bools, can_empty: Bools, seconds: float
) -> Solved | None:
    """Return the fewest moves that give all pods a node and empty the most nodes.

    Args:
        movable: bool array, pods: whether it may be moved; of one that is nowhere, whether it is
            to get a node.
        can_empty: bool array, rows: whether it is worth something that no such pod is there.
        seconds: how long it may take.

    Returns:
        None if the program is too large, has no solution, or none was found in time.
    """
    rows = np.flatnonzero(~planned.closed)
    numbers = np.flatnonzero(movable & ((planned.rows == NOWHERE) | ~planned.closed[planned.rows]))
    size = len(numbers) * len(rows)
    if not 0 < size <= MOST_VARIABLES:
        return None
    found = _run(_program(planned, numbers, rows, can_empty), seconds)
    if found is None:
        return None
    values, bound = found
    targets = rows[np.argmax(values[:size].reshape(len(numbers), len(rows)), axis=1)]
    moved = targets != planned.rows[numbers]
    goals = dict(zip(numbers[moved].tolist(), targets[moved].tolist(), strict=True))
    emptied = tuple(rows[values[size:] > _HALF].tolist())
    prize = len(numbers) + 1
    most = max(0, int(np.ceil(-bound / prize - _SLACK)))
    fewest = max(0, int(np.ceil(bound + prize * most - _SLACK)))
    return Solved(goals, emptied, most, fewest if len(emptied) == most else None)


def _program(planned: PlanningSnapshot, numbers: Rows, rows: Rows, can_empty: Bools) -> _Program:
    """Return the program; an emptied node is worth more than all moves together."""
    count, width = len(numbers), len(rows)
    homes = planned.rows[numbers]
    may = np.array([planned.may_go(int(number))[rows] for number in numbers])
    may |= homes[:, None] == rows
    moves = (homes[:, None] != rows) & (homes != NOWHERE)[:, None]
    requests = planned.requests[numbers]
    columns = np.flatnonzero(requests.any(axis=0))
    wanted = requests[:, columns].astype(np.float64)
    room = np.maximum(planned.free[np.ix_(rows, columns)], 0).astype(np.float64)
    at_home = homes[:, None] == rows
    room += at_home.T.astype(np.float64) @ wanted
    scale = np.maximum(room.max(axis=0), 1.0)
    wanted, room = (wanted / scale), (room / scale)
    kinds = len(columns)
    # A pair counts for its pod, which has one place, and for each kind of room on its row.
    own = np.broadcast_to(np.arange(count)[:, None, None], (count, width, 1))
    of_row = count + np.arange(kinds) * width + np.arange(width)[:, None]
    index = np.concatenate((own, np.broadcast_to(of_row, (count, width, kinds))), axis=2)
    values = np.concatenate(
        (np.ones((count, width, 1)), np.broadcast_to(wanted[:, None], (count, width, kinds))),
        axis=2,
    )
    sizes = np.concatenate((np.full(count * width, kinds + 1), np.full(width, kinds)))
    return _Program(
        costs=np.concatenate((moves.ravel(), np.full(width, -(count + 1.0)))),
        upper=np.concatenate((may.ravel(), can_empty[rows])).astype(np.float64),
        starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
        entries=np.concatenate((index.ravel(), of_row.ravel())).astype(np.int32),
        values=np.concatenate((values.ravel(), room.ravel())),
        least=np.concatenate((np.ones(count), np.full(width * kinds, -np.inf))),
        most=np.concatenate((np.ones(count), room.T.ravel())),
    )


def _run(program: _Program, seconds: float) -> tuple[Floats, float] | None:
    """Return a solution and a bound on what any costs; None if none was found in time."""
    import highspy  # noqa: PLC0415 - an extra: it may not be there

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.costs), len(program.least)
    model.col_cost_, model.col_upper_ = program.costs, program.upper
    model.col_lower_ = np.zeros(len(program.costs))
    model.row_lower_, model.row_upper_ = program.least, program.most
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(program.costs)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = program.starts, program.entries
    model.a_matrix_.value_ = program.values
    solver = highspy.Highs()
    for option, value in _OPTIONS.items():
        solver.setOptionValue(option, value)
    solver.setOptionValue("time_limit", float(seconds))
    solver.passModel(model)
    solver.run()
    found = solver.getInfo()
    if found.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return np.asarray(solver.getSolution().col_value), float(found.mip_dual_bound)


_OPTIONS: dict[str, bool | float | int] = {
    "output_flag": False,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.99,  # Costs are whole numbers.
    "threads": 1,
    "random_seed": 0,
}
