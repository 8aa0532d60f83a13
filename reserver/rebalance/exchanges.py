"""Moves pods that wait for each other's places: chains, cycles, one pod against several.

A waiting pod is put on a better node. Pods in its way go elsewhere in turn: other waiting pods, and
pods that no strategy moves if no strategy depends on their place. The place that the first pod
leaves is free by then, which closes a cycle. `ordering` finds an order in which all of these moves
can be carried out, through a free place if needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.rebalance.ordering import order, take_back
from reserver.rebalance.packing import Packing
from reserver.rebalance.plan import named_to
from reserver.rebalance.plan_builder import PlanBuilder
from reserver.rebalance.planning_snapshot import NOWHERE

MOST_TRIES = 1_000
"""Most tries to put a pod in the place of others, per plan."""

_TOO_MANY = f"only {MOST_TRIES} ways to exchange places of pods were tried"

_DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""Lengths of chains of pods that make way, in the order of tries."""

_MOST_TOGETHER = 3
"""Most pods that leave one node for another pod."""

_BREADTH = 8
"""Most tries of pods of a node, of sets of pods, and of nodes without a waiting pod."""

StepsAside = Callable[[int], Bools | None]
"""Returns, for a pod that no strategy moves, the rows where it may go; None if it is to stay."""


def stay(number: int) -> None:
    """Let no pod step aside."""


class Exchanges:
    """The pods of a plan that change places.

    They are put in places of others `MOST_TRIES` times at most; a note says so if that is too few.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        """Look at the pods that wait in a plan."""
        self._builder = builder
        self._tries_left = MOST_TRIES
        self._known = (0, 0)

    def resolve(self, aside: StepsAside) -> None:
        """Move pods that wait, until none can be moved any more.

        Args:
            aside: says which pods may make way without waiting themselves.
        """
        while self._has_changed() and (self._chains() or self._exchanges(aside)):
            pass

    def _has_changed(self) -> bool:
        """Return whether the plan has changed since the last time."""
        before, self._known = self._known, (len(self._builder.moves), len(self._builder.waiting))
        return before != self._known

    def _chains(self) -> bool:
        """Move pods to places that others have left; return whether there were any."""
        builder = self._builder
        before = len(builder.moves)
        for number, wish in list(builder.waiting.items()):
            builder.send(number, wish.accept, wish.why, wish.score)
        return len(builder.moves) > before

    def _exchanges(self, aside: StepsAside) -> bool:
        """Let pods take places of others; return whether any did."""
        builder, before = self._builder, len(self._builder.moves)
        search: _Search | None = None
        for number in list(builder.waiting):
            if self._tries_left <= 0:
                break
            if number not in builder.waiting or builder.refusal(number):
                continue
            search = search or _Search(builder, aside, self._tries_left)
            goals = search.goals(number)
            self._tries_left = search.tries_left
            if goals and self._carry_out(number, goals):
                search = None
            if self._tries_left <= 0:
                builder.notes.append(_TOO_MANY)
        return len(builder.moves) > before

    def _carry_out(self, number: int, goals: dict[int, int]) -> bool:
        """Make moves if the limits allow them in some order; return whether they do."""
        builder = self._builder
        planned = builder.planned
        found = order(planned, goals)
        take_back(planned, found.steps)
        if found.stuck or not builder.spent.allows([planned.pods[n] for n, _, _ in found.steps]):
            return False
        whys = {each: wish.why for each, wish in builder.waiting.items()}
        for step in found.steps:
            name = named_to(planned.pods[step.number].name, planned.pods[number].name)
            makes_way = whys[number]._replace(reason=f"makes way for {name}")
            builder.go(step, whys.get(step.number, makes_way))
        return True


class _Search:
    """Ways in which one pod takes the place of others.

    Attributes:
        tries_left: how many more may be tried.
    """

    def __init__(self, builder: PlanBuilder, aside: StepsAside, tries: int) -> None:
        self._builder = builder
        self._planned = builder.planned
        self._packing = Packing(builder.planned, builder.planned.movable, 0)
        self._aside = aside
        self._rows_at_first = builder.planned.rows.copy()
        self._leavable: dict[int, list[int]] = {}
        self._accepts: dict[int, Bools | None] = {}
        self._seen = set[int]()
        self.tries_left = tries

    def goals(self, number: int) -> dict[int, int]:
        """Return where a pod is to go, and others for it; empty if no way is found."""
        for depth in _DEPTHS:
            self._seen = {number}
            self._take(number, depth)
            goals = self._packing.goals()
            self._packing.back(0)
            if goals or len(self._seen) < depth or self.tries_left <= 0:
                return goals
        return {}

    def _take(self, number: int, depth: int) -> bool:
        """Put a pod that waits in the place of others, which go elsewhere in turn."""
        return any(
            self._instead_of(number, row, leaving, depth)
            for row in self._rows(number)
            for leaving in self._sets(number, row)
            if self._seen.isdisjoint(leaving)
        )

    def _rows(self, number: int) -> list[int]:
        """Return better rows for a pod, first the rows that other pods want to leave."""
        planned, waiting = self._planned, self._builder.waiting
        may = planned.may_go(number, waiting[number].accept)
        wishing = np.array(list(waiting))
        wishing = wishing[planned.rows[wishing] != NOWHERE]
        homes, index = np.unique(planned.rows[wishing], return_inverse=True)
        gained = np.zeros((len(homes), planned.requests.shape[1]), dtype=np.int64)
        np.add.at(gained, index, planned.requests[wishing])
        asked = np.flatnonzero(planned.requests[number])
        enough = np.all(gained[:, asked] >= self._lacking(number, homes), axis=1)
        left = homes[may[homes] & enough]
        may[left] = False
        others = np.flatnonzero(may)
        lacking = np.maximum(self._lacking(number, others), 0).sum(axis=1)
        nearly = others[np.argsort(lacking, kind="stable")[:_BREADTH]]
        return [*map(int, left), *map(int, nearly)]

    def _lacking(self, number: int, rows: Rows) -> Int64s:
        asked, free = np.flatnonzero(self._planned.requests[number]), self._planned.free
        lacking: Int64s = self._planned.requests[number, asked] - free[rows[:, None], asked]
        return lacking

    def _sets(self, number: int, row: int) -> Iterator[Sequence[int]]:
        """Yield sets of pods on a node whose removal makes room for another pod.

        Small sets come first; of equal size, sets with more waiting pods.
        """
        planned, waiting = self._planned, self._builder.waiting
        there = [n for n in self._may_leave(row) if n not in self._seen]
        wishing = (n for n in there if n in waiting)
        others = (n for n in there if n not in waiting and self._accept(n) is not None)
        leaving = [*islice(wishing, _BREADTH), *islice(others, _BREADTH)]
        asked = np.flatnonzero(planned.requests[number])
        lacking = planned.requests[number, asked] - planned.free[row, asked]
        for size in range(1, _MOST_TOGETHER + 1):
            sets = list(combinations(leaving, size))
            if sets:
                gained = planned.requests[np.array(sets)][:, :, asked].sum(axis=1)
                enough = np.flatnonzero(np.all(gained >= lacking, axis=1)).tolist()
                enough.sort(key=lambda at: sum(n not in waiting for n in sets[at]))
                yield from (sets[at] for at in enough[:_BREADTH])

    def _accept(self, number: int) -> Bools | None:
        """Return the rows where a pod on a node may go without waiting; None if it is to stay."""
        if number not in self._accepts:
            self._accepts[number] = self._aside(number)
        return self._accepts[number]

    def _may_leave(self, row: int) -> list[int]:
        """Return the pods that are on a node at first and that the plan may move."""
        if row not in self._leavable:
            builder, there = self._builder, np.flatnonzero(self._rows_at_first == row).tolist()
            self._leavable[row] = [n for n in there if not (builder.moved[n] or builder.refusal(n))]
        return self._leavable[row]

    def _instead_of(self, number: int, row: int, leaving: Sequence[int], depth: int) -> bool:
        """Put a pod on a node that others leave, if those find other places."""
        if self.tries_left <= 0:
            return False
        self.tries_left -= 1
        packing, mark = self._packing, self._packing.mark()
        self._seen.update(leaving)
        for other in leaving:
            packing.put(other, NOWHERE)
        if self._planned.targets(number)[row]:
            packing.put(number, row)
            if all(self._elsewhere(other, row, depth - 1) for other in packing.by_size(leaving)):
                return True
        packing.back(mark)
        return False

    def _elsewhere(self, number: int, home: int, depth: int) -> bool:
        """Find another place for a pod; a waiting pod may take the place of others."""
        builder = self._builder
        wish = builder.waiting.get(number)
        accept = self._accept(number) if wish is None else wish.accept
        targets = self._planned.targets(number, accept)
        targets[home] = False
        rows = np.flatnonzero(targets)
        if len(rows):
            if wish is not None and wish.score is not None:
                rows = rows[wish.score[rows] == wish.score[rows].min()]
            self._packing.put(number, int(rows[np.argmin(builder.fullness[rows])]))
            return True
        return wish is not None and depth > 0 and self._take(number, depth)
