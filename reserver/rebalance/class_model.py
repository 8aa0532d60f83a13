"""The final placement of pods as an integer program: the number of pods by class and node.

Equal pods count together, which keeps the program small. With n[c, r] pods of class c that stay on
row r, and m[c, r] pods that move there:

    sum over r of n[c, r] + m[c, r]   =  the pods of c  (<= if they are pending)
    sum over c of request[c] × them  <=  the room of r, and <= 0 if r is emptied
    the pods that leave              <=  what each budget and limit of the policy allows
    neighbours                           `neighbour_rules`

The solution has the greatest gain (emptied nodes, or pending pods that land), and the fewest moves
for that gain. The program does not contain the order of moves: `ordering` finds one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.neighbour_rules import keep_neighbours
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.pod_classes import Places, PodClasses, places_of, pod_classes
from reserver.rebalance.solver import NO_BOUND, Floats, Program, Solution
from reserver.rebalance.time_limit import TimeLimit

MOST_PLACES = 6_000
"""A program with more places is not solved: it would take all the time there is for nothing."""

_FIRST_SHARE, _SAVING_SHARE = 0.5, 0.8
"""The share of the time to find more gain, whatever it costs; then of the rest, to save moves."""

_SLACK = 1e-6


class Goals(NamedTuple):
    """The final placement of pods.

    Attributes:
        rows: the row of each given pod; `NOWHERE` for a pending pod without a node.
        fewest: the fewest moves of any placement with the same gain; None without a proof.
    """

    rows: dict[int, int]
    fewest: int | None


class ClassModel:
    """The program of some pods on some nodes.

    Attributes:
        gained: how many nodes are empty, or how many pending pods land, as things are.
    """

    def __init__(
        self,
        planned: PlanningSnapshot,
        homes: Rows,
        numbers: Rows,
        where: tuple[Bools, Bools],
        can_empty: Rows,
    ) -> None:
        """Build the program.

        Args:
            planned: the cluster; the search starts from its placement.
            homes: the row that each pod of the snapshot leaves by a move.
            numbers: the pods that may move or should land, ascending; their rows are in `where`.
            where: bool arrays, rows: targets of moved pods, and targets of pods that land.
            can_empty: rows in `where`; each without pods is a gain.
        """
        classes = self._classes = pod_classes(planned, numbers, homes[numbers])
        places = self._places = places_of(planned, classes, *where)
        self._costs = planned.costs[numbers]
        self.is_too_large = len(places.rows) > MOST_PLACES
        is_empty = ~np.isin(can_empty, places.rows[places.begun > 0])
        is_landing = classes.is_pending[places.classes] & places.enters
        self.gained = int(is_empty.sum() + places.begun[is_landing].sum())
        self._begun = np.concatenate((places.begun, is_empty)).astype(np.float64)
        self._program = program = Program()
        program.variables(places.most)  # Their numbers are those of the places.
        empty = program.variables(np.ones(len(can_empty)))
        self._gains = np.concatenate((empty, np.flatnonzero(is_landing)))
        self._moves = np.flatnonzero(places.enters & ~is_landing)
        self._least_gain = program.constraints(NO_BOUND)
        if self.is_too_large:
            return
        program.weigh(self._least_gain, self._gains)
        _keep_all(program, classes, places)
        _keep_room(program, planned, classes, places, (can_empty, empty))
        _keep_budgets(program, planned, classes, places)
        keep_neighbours(program, planned, classes, places)

    def most(self, limit: TimeLimit) -> int | None:
        """Return how much gain there is at most; None if that is not known in time."""
        costs = np.zeros(self._program.width)
        costs[self._gains] = -1.0
        found = self._program.solve(costs, limit, self._begun, any_will_do=True)
        if found is None or not np.isfinite(found.least):
            return None
        return max(self.gained, int(np.floor(-found.least + _SLACK)))

    def more(self, limit: TimeLimit) -> Goals | None:
        """Return one more gain with few moves; None if none is found in time.

        The solver finds a plan without costs much sooner than a cheap one: moves are saved
        afterwards.
        """
        gain = self.gained + 1
        self._program.least(self._least_gain, gain)
        costs = np.zeros(self._program.width)
        found = self._program.solve(costs, limit.share(_FIRST_SHARE), any_will_do=True)
        if found is None:
            return None
        fewer = self._fewest(gain, limit.share(_SAVING_SHARE), found.values)
        return self._goals((fewer or found).values, None)

    def fewer(self, limit: TimeLimit) -> Goals | None:
        """Return as much gain with fewer moves, or as many; None if time is over."""
        found = self._fewest(self.gained, limit, self._begun)
        if found is None:
            return None
        bound = int(np.ceil(found.least - _SLACK)) if np.isfinite(found.least) else None
        return self._goals(found.values, bound)

    def forbid(self, goals: Mapping[int, int]) -> bool:
        """Let fewer pods enter where these would be; return whether any were to."""
        of = dict(zip(self._classes.numbers.tolist(), self._classes.of.tolist(), strict=True))
        stuck = Counter((of[number], row) for number, row in goals.items() if number in of)
        places, is_cut = self._places, False
        for place in np.flatnonzero(places.enters).tolist():
            many = stuck[int(places.classes[place]), int(places.rows[place])]
            if many and self._values[place]:
                self._program.sum(np.array([place]), max(self._values[place] - many, 0.0))
                is_cut = True
        return is_cut

    def _fewest(self, gain: int, limit: TimeLimit, known: Floats) -> Solution | None:
        """Return the fewest moves for so much gain that are found in time."""
        self._program.least(self._least_gain, gain)
        costs = np.zeros(self._program.width)
        costs[self._moves] = 1.0
        return self._program.solve(costs, limit, known)

    def _goals(self, values: Floats, fewest: int | None) -> Goals:
        self._values = values
        return Goals(_assign(values, self._classes, self._places, self._costs), fewest)


def _keep_all(program: Program, classes: PodClasses, places: Places) -> None:
    """Each pod stays or enters a node; a pending one may get none."""
    totals = classes.totals
    rules = program.constraints(totals, np.where(classes.is_pending, 0, totals))
    program.weigh(rules[places.classes], np.arange(len(places.rows)))


def _keep_room(
    program: Program,
    planned: PlanningSnapshot,
    classes: PodClasses,
    places: Places,
    emptying: tuple[Rows, Rows],
) -> None:
    """Limit the requests to the room of each node, and to 0 on an emptied node."""
    can_empty, empty = emptying
    wanted = classes.requests[places.classes]
    rows = np.unique(np.concatenate((places.rows, can_empty)))
    at, emptied = np.searchsorted(rows, places.rows), np.searchsorted(rows, can_empty)
    for column in np.flatnonzero(wanted.any(axis=0)):
        used = np.bincount(at, wanted[:, column] * places.begun, len(rows)).astype(np.int64)
        room = np.maximum(planned.free[rows, column], 0) + used
        unit = int(np.gcd.reduce(wanted[:, column]))
        rules = program.constraints(room // unit)
        asking = np.flatnonzero(wanted[:, column])
        program.weigh(rules[at[asking]], asking, wanted[asking, column] // unit)
        program.weigh(rules[emptied], empty, room[emptied] // unit)
    # Who requests nothing has to leave as well.
    index = np.full(len(planned.closed), NOWHERE)
    index[can_empty] = empty
    there = np.flatnonzero((index[places.rows] != NOWHERE) & ~wanted.any(axis=1))
    rules = program.constraints(places.most[there])
    program.weigh(rules, there)
    program.weigh(rules, index[places.rows[there]], places.most[there])


def _keep_budgets(
    program: Program, planned: PlanningSnapshot, classes: PodClasses, places: Places
) -> None:
    """Budgets and limits of the policy allow all evictions together."""
    member = dict(zip(zip(classes.of, classes.homes, strict=True), classes.numbers, strict=True))
    staying: dict[object, list[int]] = {}
    left: dict[object, int] = {}
    begun: Counter[object] = Counter()
    for place in np.flatnonzero(~places.enters).tolist():
        number = int(member[places.classes[place], places.rows[place]])
        for key, allowed in planned.disruptions.left(planned.pods[number]):
            staying.setdefault(key, []).append(place)
            left[key] = max(allowed, 0)
            begun[key] += int(places.begun[place])
    for key, variables in staying.items():
        if left[key] < begun[key]:
            program.sum(np.array(variables), NO_BOUND, begun[key] - left[key])


def _assign(values: Floats, classes: PodClasses, places: Places, costs: Floats) -> dict[int, int]:
    """Return the row of each pod: of a class at home those stay whose move costs most."""
    rows: dict[int, int] = {}
    away: dict[int, list[int]] = {}
    stays = Counter[tuple[int, int]]()
    enters: dict[int, list[int]] = {}
    for place in np.flatnonzero(values[: len(places.rows)] > 0).tolist():
        class_, row, many = int(places.classes[place]), int(places.rows[place]), int(values[place])
        if places.enters[place]:
            enters.setdefault(class_, []).extend([row] * many)
        else:
            stays[class_, row] = many
    for index in np.argsort(-costs, kind="stable").tolist():
        number, class_, home = (
            int(of[index]) for of in (classes.numbers, classes.of, classes.homes)
        )
        if stays[class_, home]:
            stays[class_, home] -= 1
            rows[number] = home
        else:
            away.setdefault(class_, []).append(number)
    for class_, leaving in away.items():
        entered = enters.get(class_, [])
        rows |= dict(zip(leaving, entered + [NOWHERE] * (len(leaving) - len(entered)), strict=True))
    return rows
