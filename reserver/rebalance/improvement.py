"""Betters a plan within a time: the class model asked about all nodes, then about some at a time.

Large-neighbourhood search (Shaw 1998): the pods on some nodes are placed anew while all others stay
where the plan has them. What gains more, or as much with fewer moves, is kept if there is an order
in which its pods can move. How many nodes are asked about follows from how long that takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.class_model import best_goals
from reserver.rebalance.ordering import Step, carry_out, order, take_back
from reserver.rebalance.packing import Floats, scarcity
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.time_limit import TimeLimit

MOST_PODS = 6_000
"""With more pods, not all nodes are asked about at once: to sort them alone takes too long."""

_FIRST_SHARE = 0.4
"""The share of the time for all nodes at once, which alone proves a bound."""

_MANY_KINDS = 50
"""With more kinds of pods the program is hardly solved: the more, the less time it gets."""

_TURN_S = 0.5
"""How long the search among some nodes is to take; it ends after twice that."""

_FEWEST_NODES, _FIRST_NODES, _GROWTH = 4, 12, 1.25
_NOISE = 0.5
_FAR = 2
"""From the node that is drawn to the farthest ones around it: so many moves."""


class Improved(NamedTuple):
    """The best plan found.

    Attributes:
        steps: its moves, in their order.
        most: nothing gains more; None if that is not known.
        fewest: nothing that gains as many has fewer moves; None if that is not known.
    """

    steps: Sequence[Step]
    most: int | None
    fewest: int | None


class _Score(NamedTuple):
    """How good a plan is: the greater, the better.

    Attributes:
        gained: how many nodes are emptied and how many pods land.
        landed: what the pods that land request: of as many, large ones count more.
        moves: how many there are, below zero.
    """

    gained: int
    landed: float
    moves: int


def improve(
    planned: PlanningSnapshot,
    steps: Sequence[Step],
    movable: Bools,
    can_empty: Rows,
    limit: TimeLimit,
) -> Improved:
    """Carry out a plan that gains at least as much as another, with no more moves for as much.

    Args:
        planned: the cluster; pods go to rows that are not closed. As it is after all moves when
            this returns.
        steps: the moves of the plan that is known.
        movable: bool array, pods: whether it may be moved, or is to land.
        can_empty: rows; each is a gain if none of those pods is there.
        limit: of the search.
    """
    search = _Search(planned, steps, movable, can_empty)
    open_rows = ~planned.closed
    count = int(np.count_nonzero(open_rows))
    most = fewest = None
    if np.count_nonzero(movable) <= MOST_PODS:
        kinds = len({planned.kind(number) for number in np.flatnonzero(movable).tolist()})
        share = _FIRST_SHARE * (1.0 if kinds <= _MANY_KINDS else 0.5 * _MANY_KINDS / kinds)
        most, fewest = search.turn(open_rows, limit.share(share))
    drawn = np.random.default_rng(0)
    nodes, turn = min(_FIRST_NODES, count), 0
    while not limit.is_over and (most, fewest) != (search.score.gained, -search.score.moves):
        began = limit.clock()
        keys = (drawn.random(len(open_rows)), search.promise(drawn), search.moving(drawn))
        inside = np.zeros(len(open_rows), dtype=np.bool_)
        rows = np.flatnonzero(open_rows)
        key = keys[turn % len(keys)][rows]
        inside[rows[np.argsort(key, kind="stable")[:nodes]]] = True
        search.turn(inside, limit.at_most(2 * _TURN_S))
        factor = _GROWTH if limit.clock() - began < _TURN_S else 1 / _GROWTH
        nodes, turn = min(max(_FEWEST_NODES, round(nodes * factor)), count), turn + 1
    return Improved(search.steps, most, fewest if most == search.score.gained else None)


class _Search:
    """A plan that gets better.

    Attributes:
        steps: its moves; they are made on the planning snapshot between turns.
        score: of the plan.
    """

    def __init__(
        self, planned: PlanningSnapshot, steps: Sequence[Step], movable: Bools, can_empty: Rows
    ) -> None:
        self._planned = planned
        self._homes = planned.rows.copy()
        self._movable = movable
        self._can_empty = can_empty
        self._sizes: Floats = planned.requests @ scarcity(planned)
        self.steps = tuple(steps)
        carry_out(planned, self.steps)
        self.score = self._score(self.steps)

    def promise(self, drawn: np.random.Generator) -> Floats:
        """Return a number for each row: low where few pods are to leave, or where room is left."""
        planned = self._planned
        there = self._movable & (planned.rows != NOWHERE)
        load = np.zeros(len(planned.closed))
        np.add.at(load, planned.rows[there], self._sizes[there])
        leaves = np.full(len(load), np.inf)
        busy = self._can_empty[load[self._can_empty] > 0]
        leaves[busy] = _rank(load[busy])
        room = _rank(np.maximum(planned.free, 0) @ -scarcity(planned))
        promise: Floats = np.minimum(leaves, room) + drawn.random(len(load)) * _NOISE
        return promise

    def moving(self, drawn: np.random.Generator) -> Floats:
        """Return a number for each row: low where pods move to or from one row that is drawn.

        Moves among few nodes are saved together.
        """
        moved = np.flatnonzero((self._planned.rows != self._homes) & (self._homes != NOWHERE))
        size = len(self._planned.closed)
        between = np.zeros((size, size))
        np.add.at(between, (self._homes[moved], self._planned.rows[moved]), 1.0)
        between += between.T
        near = np.zeros(size)
        if len(moved):
            near[self._homes[drawn.choice(moved)]] = 1.0
            for _ in range(_FAR):
                near += between @ near / max(between.max(), 1.0)
        distance: Floats = -near * (1 + drawn.random(size))
        return distance

    def turn(self, inside: Bools, limit: TimeLimit) -> tuple[int | None, int | None]:
        """Place the pods on some rows anew; return what bounds the gain and the moves there."""
        planned = self._planned
        here = (planned.rows == NOWHERE) | inside[planned.rows]
        numbers = np.flatnonzero(here & self._movable)
        can_empty = self._can_empty[inside[self._can_empty]]
        if not len(numbers):
            return None, None
        found = best_goals(planned, self._homes, numbers, inside, can_empty, limit)
        if found is None:
            return None, None
        if any(planned.rows[number] != row for number, row in found.rows.items()):
            self._try(found.rows)
        return found.most, found.fewest

    def _try(self, rows: Mapping[int, int]) -> None:
        """Take what can be carried out of a change if that is better."""
        planned = self._planned
        after = planned.rows.copy()
        after[list(rows)] = list(rows.values())
        goals = {n: int(after[n]) for n in np.flatnonzero(after != self._homes).tolist()}
        take_back(planned, self.steps)
        # Who has to step aside may do so on a node that is emptied in the end.
        found = order(planned, goals, _alike(planned, goals)).steps
        score = self._score(found)
        if score > self.score:
            self.steps, self.score = found, score
        else:
            take_back(planned, found)
            carry_out(planned, self.steps)

    def _emptied(self, rows: Rows) -> Rows:
        return np.setdiff1d(self._can_empty, rows[self._movable])

    def _score(self, steps: Sequence[Step]) -> _Score:
        """Return the score of the plan that is carried out now."""
        landing = [step.number for step in steps if step.source == NOWHERE]
        gained = len(self._emptied(self._planned.rows)) + len(landing)
        return _Score(
            gained, round(float(self._sizes[landing].sum()), 9), len(landing) - len(steps)
        )


def _rank(values: Floats) -> Floats:
    """Return the place of each value in ascending order, from 0 to 1."""
    ranks: Floats = np.argsort(np.argsort(values, kind="stable")) / max(len(values), 1)
    return ranks


def _alike(planned: PlanningSnapshot, goals: Mapping[int, int]) -> dict[int, object]:
    """Return the class of each pod that may go where another one of its class was to go."""
    return {
        number: (planned.kind(number), bool(planned.rows[number] == NOWHERE))
        for number in goals
        if not planned.pods[number].volume_claims
    }
