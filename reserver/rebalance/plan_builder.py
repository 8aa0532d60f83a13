"""A plan under way: what it has moved, and what it may still move.

All strategies of all profiles share one stage: room that one has promised is gone for the next, and
so are the budgets and limits that it has spent.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.columns import Bools
from reserver.cluster.snapshot import Rows
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.limits import Spent
from reserver.rebalance.ordering import Step
from reserver.rebalance.plan import MOST_KEPT, Kept, Move, Why
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.policy import EvictionLimits

Floats = NDArray[np.float64]

NO_ROOM = "no node that would be better has room for it"


class PlanBuilder:
    """A planning snapshot, and what became of it so far.

    Attributes:
        planned: the cluster as the moves so far have made it.
        view: the cluster as it was before.
        indexes: intp array, pods of the planning snapshot: where each is in the view.
        numbers: intp array, pods of the view: which each is in the planning snapshot, -1 for none.
        pods: what is known of each pod of the planning snapshot, by its number.
        ranks: of these pods, the least important first: by priority, QoS class and name.
        moved: bool array, pods of the planning snapshot: it has been moved.
        moves: so far, in their order.
        fullness: float array, rows: the fullest of cpu and memory, pods and holds together.
        waiting: pods that may change places: where each would be better, and why.
        spent: what limits the moves so far.
        notes: what else people have to know.
    """

    def __init__(self, planned: PlanningSnapshot, view: PodIndex, limits: EvictionLimits) -> None:
        """Begin with nothing moved."""
        self.planned = planned
        self.view = view
        self._number_of = {pod.uid: number for number, pod in enumerate(planned.pods)}
        numbers = [self._number_of.get(each.pod.uid, -1) for each in view.pods]
        self.numbers: Rows = np.array(numbers, dtype=np.intp)
        self.indexes: Rows = np.zeros(len(planned.pods), dtype=np.intp)
        self.indexes[self.numbers[self.numbers >= 0]] = np.flatnonzero(self.numbers >= 0)
        self.pods: list[ListedPod] = [view.pods[index] for index in self.indexes.tolist()]
        self.ranks = self._ranked()
        self.moved: Bools = np.zeros(len(self.pods), dtype=np.bool_)
        self.moves: list[Move] = []
        self._steps: list[Step] = []
        self._kept: dict[str, tuple[ListedPod, Why, str | Callable[[], str]]] = {}
        self.waiting: dict[int, tuple[Bools, Why]] = {}
        self.notes: list[str] = []
        known = planned.snapshot.columns
        self._columns = [known[name] for name in _SEEN if name in known]
        self._offered = planned.snapshot.allocatable[:, self._columns].astype(np.float64)
        self.fullness = self._fullness(np.arange(len(planned.closed)))
        self.spent = Spent(limits)
        self._removed: set[str] = set()

    def number_of(self, each: ListedPod) -> int | None:
        """Return the number of a pod; None for one that takes nothing from a node."""
        return self._number_of.get(each.pod.uid)

    def has_moved(self, number: int) -> bool:
        """Return whether a pod has been moved."""
        return bool(self.moved[number])

    def send(
        self,
        number: int,
        accept: Bools,
        why: Why,
        score: Floats | None = None,
        *,
        waits: bool = False,
    ) -> bool:
        """Move a pod to a node that has room for it; return whether it was moved.

        Args:
            number: of the pod.
            accept: bool array, rows: where it would be better.
            why: why it is moved.
            score: float array, rows: the less the better; the emptiest of equal ones is taken.
            waits: without room it may change places with another one that waits. That is for
                strategies to which it does not matter who else has moved.
        """
        if self.has_moved(number):
            return False
        refusal = self.refusal(self.pods[number])
        if refusal:
            self.keep(self.pods[number], why, refusal)
            return False
        planned = self.planned
        rows = np.flatnonzero(planned.targets(number, accept))
        if not len(rows):
            if waits and len(self.waiting) < _MOST_WAITING:
                self.waiting[number] = (accept, why)
            self.keep(self.pods[number], why, NO_ROOM)
            return False
        if score is not None:
            rows = rows[score[rows] == score[rows].min()]
        best = rows[np.argmin(self.fullness[rows])]
        self.go(Step(number, int(planned.rows[number]), int(best)), why)
        return True

    def renew(self, number: int, accept: Bools, why: Why) -> bool:
        """Let a pod begin anew on its own node, if it may be there; return whether it does."""
        planned = self.planned
        row = int(planned.rows[number])
        if self.has_moved(number) or self.refusal(self.pods[number]) or not accept[row]:
            return False
        if planned.may_stay(number):
            self.go(Step(number, row, row), why)
            return True
        return False

    def remove(self, each: ListedPod, why: Why) -> bool:
        """Evict a pod that takes nothing from a node; return whether it is."""
        limit = self.spent.refusal(each)  # Budgets are not about pods that have ended.
        if limit:
            self.keep(each, why, limit)
        elif each.pod.uid not in self._removed:
            self._removed.add(each.pod.uid)
            self._record(each, None, why)
            return True
        return False

    def mark(self) -> int:
        """Return a mark to go back to."""
        return len(self._steps)

    def back(self, mark: int) -> None:
        """Undo all moves since a mark."""
        while len(self._steps) > mark:
            number, source, target = self._steps.pop()
            self.moves.pop()
            self._put(number, target, source)
            self.planned.disruptions.give_back(self.pods[number].pod)
            self.spent.count(self.pods[number], -1)
            self.moved[number] = False

    def keep(self, each: ListedPod, why: Why, reason: str | Callable[[], str]) -> None:
        """Take note of why a pod stays that a strategy would have moved.

        The words may be found once it is told, as few of them are.
        """
        uid, number = each.pod.uid, self.number_of(each)
        has_left = uid in self._removed if number is None else self.moved[number]
        if not has_left:
            self._kept.setdefault(uid, (each, why, reason))

    def kept(self) -> tuple[tuple[Kept, ...], int]:
        """Return what stays that a strategy would have moved, by name, and how many are left out.

        There may be as many as there are pods.
        """
        found = nsmallest(MOST_KEPT, self._kept.values(), key=lambda kept: kept[0].pod.name)
        named = (
            Kept(
                pod=each.pod.name,
                node=each.pod.node,
                strategy=why.strategy,
                profile=why.profile,
                why=reason if isinstance(reason, str) else reason(),
            )
            for each, why, reason in found
        )
        return tuple(named), len(self._kept) - len(found)

    def refusal(self, each: ListedPod) -> str:
        """Return why a pod may not be moved any more; empty if it may."""
        return self.spent.refusal(each) or self.planned.disruptions.refusal(each.pod)

    def _put(self, number: int, source: int, target: int) -> None:
        self.planned.put(number, target)
        both = np.array([source, target])
        self.fullness[both] = self._fullness(both)

    def _ranked(self) -> list[int]:
        ranks: Rows = np.zeros(len(self.pods), dtype=np.intp)
        priorities = [_LAST if each.priority is None else each.priority for each in self.pods]
        classes = [_QOS.get(each.qos, 1) for each in self.pods]
        keys = (self.indexes, np.array(classes, dtype=np.int64), np.array(priorities, np.int64))
        ranks[np.lexsort(keys)] = np.arange(len(ranks))
        found: list[int] = ranks.tolist()
        return found

    def _fullness(self, rows: Rows) -> Floats:
        columns, offered = self._columns, self._offered[rows]
        free = self.planned.free[rows][:, columns]
        shares: Floats = 1 - np.divide(free, offered, out=np.zeros_like(offered), where=offered > 0)
        fullest: Floats = shares.max(axis=1, initial=0.0)
        return fullest

    def go(self, step: Step, why: Why) -> None:
        """Make a move that nothing refuses."""
        name_of = self.planned.snapshot.name_of
        each = self.pods[step.number]
        self.planned.disruptions.spend(each.pod)
        self._record(each, name_of(step.target), why, source=name_of(step.source))
        self.moved[step.number] = True
        self.waiting.pop(step.number, None)
        self._steps.append(step)
        if step.target != step.source:
            self._put(step.number, step.source, step.target)

    def _record(self, each: ListedPod, target: str | None, why: Why, source: str = "") -> None:
        self.spent.count(each)
        self._kept.pop(each.pod.uid, None)
        self.moves.append(why.move(each.pod, source or each.node, target))


_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}
_LAST = -(2**63)
_SEEN = ("cpu", "memory")
_MOST_WAITING = 500
