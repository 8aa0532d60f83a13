"""Where pods are to be, as an integer program: how many of each class on each node.

Pods that are alike count together, which makes the program small. With n[c, r] pods of class c on
row r that begin there (they stay), and m[c, r] that come from elsewhere (each a move):

    sum over r of n[c, r] + m[c, r]   =  the pods of c  (<= if they are pending)
    sum over c of request[c] × them  <=  the room of r, and <= 0 if r is to be empty
    the pods that leave              <=  what each budget and limit of the policy allows
    neighbours                           `neighbour_rules`

The gain is the greatest (empty nodes, or pending pods that land), and the moves the fewest for that
gain. In which order pods can move is not in the program: `ordering` finds that out.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.neighbour_rules import keep_neighbours
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.pod_classes import Places, PodClasses, places_of, pod_classes
from reserver.rebalance.solver import NO_BOUND, Floats, Program
from reserver.rebalance.time_limit import TimeLimit

MOST_PLACES = 6_000
"""A program with more places is not solved: it would take all the time there is for nothing."""

_FIRST_SHARE = 0.6
"""After this share of the time the gain stands, and the search for fewer moves begins."""

_SLACK = 1e-6


class Goals(NamedTuple):
    """Where pods are to be.

    Attributes:
        rows: the row of each pod that was asked about; `NOWHERE` for a pending one without a node.
        gained: how many nodes are emptied, or how many pending pods land.
        most: nothing gains more; None if that is not known.
        fewest: nothing that gains as many has fewer moves; None if that is not known.
    """

    rows: dict[int, int]
    gained: int
    most: int | None
    fewest: int | None


def best_goals(
    planned: PlanningSnapshot,
    homes: Rows,
    numbers: Rows,
    inside: Bools,
    can_empty: Rows,
    limit: TimeLimit,
) -> Goals | None:
    """Return the most gain with the fewest moves that is found in time; None if nothing is.

    The pods begin the search where they are on the planning snapshot.

    Args:
        planned: the cluster; stays as it is.
        homes: the row of the node that each pod of the snapshot has to leave to move.
        numbers: the pods that may move or are to land, ascending; where they are is inside.
        inside: bool array, rows: where they may be.
        can_empty: rows inside; each is a gain if none of the pods is there.
        limit: of the search.
    """
    classes = pod_classes(planned, numbers, homes[numbers])
    places = places_of(planned, classes, inside)
    if len(places.rows) > MOST_PLACES:
        return None
    program = Program()
    program.variables(places.most)  # Their numbers are those of the places.
    empty = program.variables(np.ones(len(can_empty)))
    _keep_all(program, classes, places)
    _keep_room(program, planned, classes, places, (can_empty, empty))
    _keep_budgets(program, planned, classes, places)
    keep_neighbours(program, planned, classes, places)
    enters = np.flatnonzero(places.enters)
    is_landing = classes.is_pending[places.classes[enters]]
    gains, moves = np.concatenate((empty, enters[is_landing])), enters[~is_landing]
    known = np.concatenate(
        (places.begun, ~np.isin(can_empty, places.rows[places.begun > 0]))
    ).astype(np.float64)
    found = _most_then_fewest(program, gains, moves, known, limit)
    if found is None:
        return None
    values, most, fewest = found
    rows = _assign(values, classes, places)
    return Goals(rows, round(values[gains].sum()), most, fewest)


def _most_then_fewest(
    program: Program, gains: Rows, moves: Rows, known: Floats, limit: TimeLimit
) -> tuple[Floats, int | None, int | None] | None:
    """Return the values of the greatest gain with few moves, and what bounds both.

    A gain is worth more than all moves together. What the first search leaves open about moves, a
    second one for so much gain looks into.
    """
    gained = program.constraints(NO_BOUND)
    program.weigh(gained, gains)
    prize = program.most_of(moves) + 1.0
    costs = np.zeros(program.width)
    costs[moves], costs[gains] = 1.0, -prize
    first = program.solve(costs, limit.left * _FIRST_SHARE, known)
    if first is None:
        return None
    gain = round(first.values[gains].sum())
    most = fewest = None
    if np.isfinite(first.least):
        most = max(gain, int(np.ceil(-first.least / prize - _SLACK)))
        fewest = max(0, int(np.ceil(first.least + prize * gain - _SLACK)))
    if gain == most and fewest == round(first.values[moves].sum()):
        return first.values, most, fewest
    program.least(gained, gain)
    costs[gains] = 0.0
    second = program.solve(costs, limit.left, first.values)
    if second is None:
        return first.values, most, None
    if gain == most and np.isfinite(second.least):
        fewest = max(fewest or 0, int(np.ceil(second.least - _SLACK)))
    return second.values, most, fewest if gain == most else None


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
    """What pods request fits; on a node that is to be empty, nothing does."""
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


def _assign(values: Floats, classes: PodClasses, places: Places) -> dict[int, int]:
    """Return the row of each pod: the first ones of a class at home stay, the others enter."""
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
    of = zip(classes.numbers.tolist(), classes.of.tolist(), classes.homes.tolist(), strict=True)
    for number, class_, home in of:
        if stays[class_, home]:
            stays[class_, home] -= 1
            rows[number] = home
        else:
            away.setdefault(class_, []).append(number)
    for class_, leaving in away.items():
        entered = enters.get(class_, [])
        rows |= dict(zip(leaving, entered + [NOWHERE] * (len(leaving) - len(entered)), strict=True))
    return rows
