"""Integer programs, which HiGHS solves within a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.rebalance.time_limit import TimeLimit

if TYPE_CHECKING:
    from highspy import HighsLp

Floats = NDArray[np.float64]

NO_BOUND = np.inf
"""Of a sum that nothing bounds."""


class Solution(NamedTuple):
    """The best values that were found in time.

    Attributes:
        values: of each variable, whole numbers.
        least: no values cost less.
    """

    values: Floats
    least: float


class Program:
    """Whole numbers from 0 to a limit each, and constraints, each on a weighted sum of them."""

    def __init__(self) -> None:
        """Begin without any."""
        self._upper: list[float] = []
        self._least: list[float] = []
        self._most: list[float] = []
        self._entries: list[tuple[Rows, Rows, Floats]] = []
        self._derived: list[tuple[int, Callable[[Floats], float]]] = []

    def variables(self, upper: ArrayLike) -> Rows:
        """Add variables with these limits; return their numbers."""
        first = len(self._upper)
        self._upper += np.atleast_1d(np.asarray(upper, dtype=np.float64)).tolist()
        return np.arange(first, len(self._upper))

    def derive(self, variable: Rows, value: Callable[[Floats], float]) -> None:
        """Derive the start value of a variable from the values of earlier variables."""
        self._derived.append((int(variable[0]), value))

    def constraints(self, most: ArrayLike, least: ArrayLike = -NO_BOUND) -> Rows:
        """Add constraints with these bounds of their sums; return their numbers."""
        first = len(self._most)
        self._most += np.atleast_1d(np.asarray(most, dtype=np.float64)).tolist()
        bounds = np.broadcast_to(np.asarray(least, dtype=np.float64), np.shape(most))
        self._least += np.atleast_1d(bounds).tolist()
        return np.arange(first, len(self._most))

    def weigh(self, constraints: Rows, variables: Rows, weights: ArrayLike = 1.0) -> None:
        """Let variables count in the sums of constraints, pair by pair, each pair once."""
        values = np.asarray(weights, dtype=np.float64)
        pairs = np.broadcast_arrays(constraints, variables, values)
        self._entries.append((pairs[0], pairs[1], pairs[2]))

    def sum(self, variables: Rows, most: float, least: float = -NO_BOUND) -> None:
        """Bound the sum of variables."""
        self.weigh(self.constraints(most, least), variables)

    def least(self, constraint: Rows, least: float) -> None:
        """Change the lower bound of a constraint."""
        self._least[int(constraint[0])] = least

    @property
    def width(self) -> int:
        """The number of variables."""
        return len(self._upper)

    def solve(
        self,
        costs: Floats,
        limit: TimeLimit,
        start: Floats | None = None,
        *,
        any_will_do: bool = False,
    ) -> Solution | None:
        """Return values of which some cost little; None if none were found in time.

        Args:
            costs: of each unit of each variable; whole numbers.
            limit: of the search, by its clock: HiGHS' own says nothing of a busy machine.
            start: values to begin with, of the first variables or of all; None for any.
            any_will_do: the first values that are found are returned, whatever they cost.
        """
        import highspy  # noqa: PLC0415 - what plans nothing does not load it

        solver = highspy.Highs()
        for option, value in _OPTIONS.items():
            solver.setOptionValue(option, value)
        if any_will_do:
            solver.setOptionValue("mip_max_improving_sols", 1)

        def stop_in_time(event: highspy.highs.HighsCallbackEvent) -> None:
            if limit.is_over:
                event.interrupt()

        solver.cbMipInterrupt += stop_in_time
        solver.cbSimplexInterrupt += stop_in_time
        solver.passModel(self._model(costs))
        if start is not None:
            every = np.arange(len(costs), dtype=np.int32)
            solver.setSolution(len(costs), every, self._all(start))
        solver.run()
        found = solver.getInfo()
        if found.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        values = np.rint(np.asarray(solver.getSolution().col_value))
        return Solution(values, float(found.mip_dual_bound))

    def _all(self, start: Floats) -> Floats:
        """Return values of all variables."""
        values = np.zeros(len(self._upper))
        values[: len(start)] = start
        for variable, value in self._derived if len(start) < len(values) else ():
            values[variable] = value(values)
        return values

    def _model(self, costs: Floats) -> HighsLp:
        import highspy  # noqa: PLC0415 - as above

        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._upper), len(self._most)
        model.col_cost_ = costs
        model.col_lower_, model.col_upper_ = np.zeros(len(costs)), np.array(self._upper)
        model.row_lower_, model.row_upper_ = np.array(self._least), np.array(self._most)
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
        rows, columns, values = (
            np.concatenate([part.ravel() for part in parts])
            for parts in zip(*self._entries, strict=True)
        )
        order = np.lexsort((rows, columns))
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        starts = np.searchsorted(columns[order], np.arange(len(costs) + 1))
        matrix.start_, matrix.index_ = starts.astype(np.int32), rows[order].astype(np.int32)
        matrix.value_ = values[order]
        return model


_OPTIONS: dict[str, bool | float | int] = {
    "output_flag": False,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.99,  # Costs are whole numbers.
    "threads": 1,
    "random_seed": 0,
}
