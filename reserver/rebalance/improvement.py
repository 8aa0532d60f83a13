"""Betters a plan within a time: the class model asked about all nodes, then about some at a time.

Large-neighbourhood search (Shaw 1998): the pods on some nodes are placed anew while all others stay
where the plan has them. What gains more, or as much with fewer moves, is kept if there is an order
in which its pods can move; where some are stuck, fewer go there, and the model is asked again. How
many nodes are asked about follows from how long that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.class_model import ClassModel, Goals
from reserver.rebalance.neighbourhoods import Nearby, Neighbourhoods
from reserver.rebalance.ordering import Step, carry_out, interchangeable, order, take_back
from reserver.rebalance.packing import Floats, scarcity
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.policy import NO_LIMITS
from reserver.rebalance.time_limit import TimeLimit

MOST_PODS = 6_000
"""With more pods, not all nodes are asked about at once: to sort them alone takes too long."""

_FIRST_SHARE = 0.25
"""The share of the time for all nodes at once, which alone proves a bound."""

_MANY_KINDS = 50
"""With more kinds of pods the program is hardly solved: the more, the less time it gets."""

_TURN_S = 0.5
"""Target time of a search among some nodes, in seconds; it ends after twice as long."""

_FEWEST_NODES, _FIRST_NODES, _GROWTH = 4, 12, 1.4
_FEW_NODES = 24
"""Of so few nodes a turn begins with all."""

_BOUND_SHARE, _MORE_SHARE = 0.2, 0.7
"""Shares of the time for all nodes at once: for a bound, and then for more gain."""

_LONG_SHARE = 0.5
"""The share of the time that is left for a turn that has come to ask about all nodes."""

_SAVING_SHARE = 0.15
"""The share of the time at the end in which moves are saved only."""

_DEAR = 25
"""After a gain that takes so many moves some are saved first: each further one would take more."""

_LITTLE = 0.04
"""The share of the moves; where a turn saves less, there is little to save."""

_CUTS = 4
"""So often the model is asked again where pods are stuck."""


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
    """The score of a plan: the greater, the better.

    Attributes:
        gained: the number of emptied nodes and of landed pods.
        landed: the requests of landed pods, so that large pods win a tie.
        moves: the number of moves, negated.
        cost: the cost of the moves, negated.
    """

    gained: int
    landed: float
    moves: int
    cost: float


def improve(
    planned: PlanningSnapshot,
    steps: Sequence[Step],
    movable: Bools,
    can_empty: Rows,
    limit: TimeLimit,
) -> Improved:
    """Carry out the best plan of a search, which is at least as good as the given plan.

    Args:
        planned: the cluster; pods go to rows that are not closed. Afterwards the cluster after
            all moves.
        steps: the moves of the given plan.
        movable: bool array, pods: pods that may move or should land.
        can_empty: rows; each without movable pods is a gain.
        limit: the time limit of the search.
    """
    search = _Search(planned, steps, movable, can_empty)
    count = int(np.count_nonzero(~planned.closed))
    gaining = limit.share(1 - _SAVING_SHARE)
    most, fewest = _everywhere(search, planned, movable, limit)
    near = search.neighbourhoods(np.random.default_rng(0))
    ways = (
        (near.gaining, 1),
        (near.gaining, 1),
        (near.any_nodes, 1),
        (near.saving, 0),
        (near.exchanging, 0),
    )
    nodes, turn = [count if count <= _FEW_NODES else _FIRST_NODES] * len(ways), 0
    is_dear = False
    while not limit.is_over and (most, fewest) != (search.score.gained, -search.score.moves):
        began, way, before = limit.clock(), turn % len(ways), search.score
        choose, more = ways[way]
        if more and (most == before.gained or gaining.is_over or is_dear):
            turn += 1
            continue
        until = gaining if more else limit
        is_all = nodes[way] == count
        until = until.share(_LONG_SHARE) if is_all else until.at_most(2 * _TURN_S)
        search.turn(choose(nodes[way]), until, more)
        saved = search.score.moves - before.moves
        if has_gained := search.score.gained > before.gained:
            is_dear = -saved >= _DEAR
        elif is_dear and not more:
            is_dear = saved >= _LITTLE * -before.moves
        turn += not has_gained  # A way that gains is tried again.
        factor = _GROWTH if limit.clock() - began < _TURN_S else 1 / _GROWTH
        nodes[way] = min(max(_FEWEST_NODES, round(nodes[way] * factor)), count)
    return Improved(search.steps, most, fewest if most == search.score.gained else None)


def _everywhere(
    search: _Search, planned: PlanningSnapshot, movable: Bools, limit: TimeLimit
) -> tuple[int | None, int | None]:
    """Search among all nodes at once if the cluster is small; return bounds on gain and moves."""
    if np.count_nonzero(movable) > MOST_PODS:
        return None, None
    kinds = len({planned.kind(number) for number in np.flatnonzero(movable).tolist()})
    share = _FIRST_SHARE * (1.0 if kinds <= _MANY_KINDS else 0.5 * _MANY_KINDS / kinds)
    return search.everywhere(~planned.closed, limit.share(share))


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

    def neighbourhoods(self, drawn: np.random.Generator) -> Neighbourhoods:
        """Return the nodes to choose from."""
        return Neighbourhoods(
            self._planned,
            self._homes,
            self._movable,
            self._can_empty,
            self._sizes,
            scarcity(self._planned),
            drawn,
        )

    def everywhere(self, open_rows: Bools, limit: TimeLimit) -> tuple[int | None, int | None]:
        """Place all pods anew; return what bounds the gain and the moves."""
        model = self._model(Nearby(open_rows))
        if model is None:
            return None, None
        most = model.most(limit.share(_BOUND_SHARE))
        while model.gained != most and not limit.is_over:
            self.turn(Nearby(open_rows), limit.share(_MORE_SHARE), 1)
            if self.score.gained == model.gained:
                break
            model = self._model(Nearby(open_rows)) or model
        found = model.fewer(limit)
        if found is None:
            return most, None
        self._take_order(model, found, model.fewer, limit)
        return most, found.fewest

    def turn(self, near: Nearby, limit: TimeLimit, more: int) -> None:
        """Place the pods on some rows anew, for one more gain or with fewer moves."""
        model = self._model(near)
        if model is None:
            return
        again = model.more if more else model.fewer
        found = again(limit)
        if found is not None:
            self._take_order(model, found, again, limit)

    def _model(self, near: Nearby) -> ClassModel | None:
        planned, (inside, target) = self._planned, near
        here = (planned.rows == NOWHERE) | inside[planned.rows]
        can_empty, landing = self._can_empty[inside[self._can_empty]], inside
        # What is gained elsewhere stays, unless a limit makes gains compete for the same moves.
        if target != NOWHERE and planned.disruptions.limits == NO_LIMITS:
            landed = (self._homes == NOWHERE) & (planned.rows != NOWHERE)
            here &= ~landed | (planned.rows == target)
            landing = np.arange(len(inside)) == target
            busy = np.isin(can_empty, planned.rows[self._movable])
            can_empty = can_empty[~busy | (can_empty == target)]
        numbers = np.flatnonzero(here & self._movable)
        if not len(numbers):
            return None
        model = ClassModel(planned, self._homes, numbers, (inside, landing), can_empty)
        return None if model.is_too_large else model

    def _take_order(
        self,
        model: ClassModel,
        found: Goals,
        again: Callable[[TimeLimit], Goals | None],
        limit: TimeLimit,
    ) -> None:
        """Take the moves that can be ordered; search again without the stuck ones."""
        for _ in range(_CUTS):
            stuck = self._try(found.rows)
            if not model.forbid(stuck) or limit.is_over:
                return
            other = again(limit)
            if other is None:
                return
            found = other

    def _try(self, rows: Mapping[int, int]) -> dict[int, int]:
        """Take the part of a change that can be ordered, if better; return the stuck pods."""
        planned = self._planned
        after = planned.rows.copy()
        after[list(rows)] = list(rows.values())
        if self._ideal(after) <= self.score:
            return {}
        goals = {n: int(after[n]) for n in np.flatnonzero(after != self._homes).tolist()}
        take_back(planned, self.steps)
        # Who has to step aside may do so on a node that is emptied in the end.
        found = order(planned, goals, interchangeable(planned, goals))
        score = self._score(found.steps)
        if score > self.score:
            self.steps, self.score = found.steps, score
        else:
            take_back(planned, found.steps)
            carry_out(planned, self.steps)
        return {number: goals[number] for number in found.stuck}

    def _ideal(self, rows: Rows) -> _Score:
        """Return the score of a plan by which pods get there with a move each."""
        landing = np.flatnonzero((self._homes == NOWHERE) & (rows != NOWHERE))
        moving = np.flatnonzero((self._homes != NOWHERE) & (rows != self._homes))
        return self._scored(self._emptied(rows), landing, moving)

    def _emptied(self, rows: Rows) -> Rows:
        return np.setdiff1d(self._can_empty, rows[self._movable])

    def _score(self, steps: Sequence[Step]) -> _Score:
        """Return the score of the plan that is carried out now."""
        landing = np.array([n for n, source, _ in steps if source == NOWHERE], dtype=np.intp)
        moving = np.array([n for n, source, _ in steps if source != NOWHERE], dtype=np.intp)
        return self._scored(self._emptied(self._planned.rows), landing, moving)

    def _scored(self, emptied: Rows, landing: Rows, moving: Rows) -> _Score:
        return _Score(
            len(emptied) + len(landing),
            round(float(self._sizes[landing].sum()), 9),
            -len(moving),
            -round(float(self._planned.costs[moving].sum()), 1),
        )
