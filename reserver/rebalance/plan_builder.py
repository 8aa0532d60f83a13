"""A plan under construction: moved pods, and pods that may still move.

All strategies of all profiles share one plan: the next strategy cannot use room, budgets or limits
that an earlier one has used.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.limits import Spent
from reserver.rebalance.ordering import Step
from reserver.rebalance.plan import MOST_KEPT, Kept, PlannedMove, Why
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.policy import EvictionLimits

Floats = NDArray[np.float64]

NO_ROOM = "no node that would be better has room for it"


class Wish(NamedTuple):
    """The better nodes of a pod that has no room there.

    Attributes:
        accept: bool array, rows: the better nodes.
        why: the reason to move.
        score: float array, rows: the lower the better; None if all are equal.
    """

    accept: Bools
    why: Why
    score: Floats | None


class PlanBuilder:
    """A planning snapshot, and what became of it so far.

    Attributes:
        planned: the cluster as the moves so far have made it.
        index: the cluster as it was before; of the same pods.
        moved: bool array, pods: it has been moved, or evicted without a node to go to.
        moves: so far, in their order.
        fullness: float array, rows: the fullest of cpu and memory, pods and holds together.
        waiting: pods that may change places.
        spent: what limits the moves so far.
        notes: what else people have to know.
    """

    def __init__(self, planned: PlanningSnapshot, index: PodIndex, limits: EvictionLimits) -> None:
        """Begin with nothing moved."""
        self.planned = planned
        self.index = index
        self.moved: Bools = np.zeros(len(index.pods), dtype=np.bool_)
        self.moves: list[PlannedMove] = []
        self._steps: list[Step] = []
        self._kept: dict[int, tuple[Why, str | Callable[[], str]]] = {}
        self.waiting: dict[int, Wish] = {}
        self.notes: list[str] = []
        known = planned.snapshot.columns
        self._columns = [known[name] for name in _SEEN if name in known]
        offered = planned.snapshot.allocatable[:, self._columns].astype(np.float64)
        self._offered = np.where(offered > 0, offered, np.inf)
        self.fullness = self._fullness(np.arange(len(planned.closed)))
        self.spent = Spent(limits)

    def send(
        self,
        number: int,
        accept: Bools,
        why: Why,
        score: Floats | None = None,
        *,
        waits: bool = False,
        gain: Floats | None = None,
    ) -> bool:
        """Move a pod to a node that has room for it; return whether it was moved.

        Args:
            accept: bool array, rows: acceptable targets.
            why: the reason to move.
            score: float array, rows: the lower the better; of equal rows the emptiest is taken.
            gain: float array, rows: the gain, as in `PlannedMove`.
            waits: without room the pod may change places with another waiting pod; only for
                strategies that do not depend on other moves.
        """
        if self.moved[number]:
            return False
        if refusal := self.refusal(number):
            self.keep(number, why, refusal)
            return False
        planned = self.planned
        rows = planned.targets(number, accept).nonzero()[0]
        if not len(rows):
            if waits and len(self.waiting) < _MOST_WAITING:
                self.waiting.setdefault(number, Wish(accept, why, score))
            self.keep(number, why, NO_ROOM)
            return False
        if score is not None:
            rows = rows[score[rows] == score[rows].min()]
        best = rows[np.argmin(self.fullness[rows])]
        if gain is not None:
            why = why._replace(gain=round(float(gain[best]), 1))
        self.go(Step(number, int(planned.rows[number]), int(best)), why)
        return True

    def renew(self, number: int, accept: Bools, why: Why) -> bool:
        """Let a pod begin anew on its own node, if it may be there; return whether it does."""
        planned = self.planned
        row = int(planned.rows[number])
        if self.moved[number] or self.refusal(number) or not accept[row]:
            return False
        if planned.may_stay(number):
            self.go(Step(number, row, row), why)
            return True
        return False

    def remove(self, number: int, why: Why) -> None:
        """Evict a pod that takes nothing from a node."""
        # Budgets are not about pods that have ended.
        if limit := self.spent.refusal(self.index.pods[number]):
            self.keep(number, why, limit)
        elif not self.moved[number]:
            self.moved[number] = True
            self._record(number, None, why)

    def mark(self) -> int:
        """Return a mark to go back to."""
        return len(self._steps)

    def back(self, mark: int) -> None:
        """Undo all moves since a mark."""
        while len(self._steps) > mark:
            number, source, target = self._steps.pop()
            self.moves.pop()
            self._put(number, target, source)
            self.planned.disruptions.give_back(self.planned.pods[number])
            self.spent.count(self.index.pods[number], -1)
            self.moved[number] = False

    def keep(self, number: int, why: Why, reason: str | Callable[[], str]) -> None:
        """Record the reason why a candidate stays.

        The text may be computed later, because few reasons are shown.
        """
        if not self.moved[number]:
            self._kept.setdefault(number, (why, reason))

    def kept(self) -> tuple[tuple[Kept, ...], int]:
        """Return what stays that a strategy would have moved, by name, and how many are left out.

        There may be as many as there are pods.
        """
        found = nsmallest(MOST_KEPT, self._kept.items())  # Pods are numbered by name.
        named = (
            Kept(
                pod=self.planned.pods[number].name,
                node=self.planned.pods[number].node,
                strategy=why.strategy,
                profile=why.profile,
                why=reason if isinstance(reason, str) else reason(),
            )
            for number, (why, reason) in found
        )
        return tuple(named), len(self._kept) - len(found)

    def refusal(self, number: int) -> str:
        """Return why a pod may not be moved any more; empty if it may."""
        pod = self.planned.pods[number]
        return self.spent.refusal(pod) or self.planned.disruptions.refusal(pod)

    def _put(self, number: int, source: int, target: int) -> None:
        self.planned.put(number, target)
        both = np.array([source, target])
        self.fullness[both] = self._fullness(both)

    def _fullness(self, rows: Rows) -> Floats:
        shares: Floats = 1 - self.planned.free[rows][:, self._columns] / self._offered[rows]
        fullest: Floats = shares.max(axis=1, initial=0.0)
        return fullest

    def go(self, step: Step, why: Why) -> None:
        """Make a move that nothing refuses."""
        name_of = self.planned.snapshot.name_of
        self.planned.disruptions.spend(self.planned.pods[step.number])
        self._record(step.number, name_of(step.target), why, source=name_of(step.source))
        self.moved[step.number] = True
        self.waiting.pop(step.number, None)
        self._steps.append(step)
        if step.target != step.source:
            self._put(step.number, step.source, step.target)

    def _record(self, number: int, target: str | None, why: Why, source: str = "") -> None:
        pod = self.planned.pods[number]
        self.spent.count(pod)
        self._kept.pop(number, None)
        self.moves.append(why.move(pod, source or pod.node, target))


_SEEN = ("cpu", "memory")
_MOST_WAITING = 500
