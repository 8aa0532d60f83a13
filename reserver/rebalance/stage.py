"""What a plan under way has moved, and what it may still move.

All strategies of all profiles share one stage: room that one has promised is gone for the next, and
so are the budgets and limits that it has spent.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.columns import Bools
from reserver.cluster.pod import PodName
from reserver.cluster.snapshot import Rows
from reserver.rebalance.inventory import Inventory, ListedPod
from reserver.rebalance.ordering import Step, order, take_back
from reserver.rebalance.plan import Kept, Move
from reserver.rebalance.policy import EvictionLimits
from reserver.rebalance.scene import Scene, Why

Floats = NDArray[np.float64]

MOST_SWAPS = 1_000
"""Pairs of pods that wait for each other's places: so many are tried for a plan."""

_TOO_MANY_SWAPS = f"only {MOST_SWAPS} pairs of pods that might change places were tried"
NO_ROOM = "no node that would be better has room for it"


class Stage:
    """A scene, and what became of it so far.

    Attributes:
        scene: the cluster; its board is as the moves so far have made it.
        inventory: as it was before.
        pods: what is known of each pod of the board, by its number.
        moves: so far, in their order.
        fullness: float array, rows: the fullest of cpu and memory, pods and holds together.
        kept: what stays that was to move, by name.
        notes: what else people have to know.
    """

    def __init__(self, scene: Scene, inventory: Inventory, limits: EvictionLimits) -> None:
        """Begin with nothing moved."""
        self.scene = scene
        self.inventory = inventory
        by_uid = {each.pod.uid: each for each in inventory.pods}
        self.pods: tuple[ListedPod, ...] = tuple(by_uid[pod.uid] for pod in scene.board.pods)
        self._number_of = {pod.uid: number for number, pod in enumerate(scene.board.pods)}
        self.moves: list[Move] = []
        self._steps: list[Step] = []
        self.kept: dict[PodName, Kept] = {}
        self.notes: list[str] = []
        self.fullness = self._fullness(np.arange(len(scene.board.closed)))
        self._limits = limits
        self._from: Counter[str] = Counter()
        self._moved: set[int] = set()
        self._waiting: dict[int, tuple[Bools, Why]] = {}
        self._tried = 0

    def number_of(self, each: ListedPod) -> int | None:
        """Return the number of a pod; None for one that takes nothing from a node."""
        return self._number_of.get(each.pod.uid)

    def has_moved(self, number: int) -> bool:
        """Return whether a pod has been moved."""
        return number in self._moved

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
        if number in self._moved:
            return False
        refusal = self.refusal(self.pods[number])
        if refusal:
            self.keep(self.pods[number], why, refusal)
            return False
        board = self.scene.board
        rows = np.flatnonzero(board.targets(number, accept))
        if not len(rows):
            if waits and len(self._waiting) < _MOST_WAITING:
                self._waiting[number] = (accept, why)
            self.keep(self.pods[number], why, NO_ROOM)
            return False
        if score is not None:
            rows = rows[score[rows] == score[rows].min()]
        best = rows[np.argmin(self.fullness[rows])]
        self._go(Step(number, int(board.rows[number]), int(best)), why)
        return True

    def renew(self, number: int, accept: Bools, why: Why) -> bool:
        """Let a pod begin anew on its own node, if it may be there; return whether it does."""
        board = self.scene.board
        row = int(board.rows[number])
        if number in self._moved or self.refusal(self.pods[number]) or not accept[row]:
            return False
        if board.may_stay(number):
            self._go(Step(number, row, row), why)
            return True
        return False

    def remove(self, each: ListedPod, why: Why) -> bool:
        """Evict a pod that takes nothing from a node; return whether it is."""
        limit = self._limit(each)  # Budgets are not about pods that have ended.
        if limit:
            self.keep(each, why, limit)
        elif all(move.uid != each.pod.uid for move in self.moves if move.target is None):
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
            pod = self.pods[number].pod
            self._put(number, target, source)
            self.scene.disruptions.give_back(pod)
            self._from[f"node {pod.node}"] -= 1
            self._from[pod.name.namespace] -= 1
            self._moved.discard(number)

    def keep(self, each: ListedPod, why: Why, reason: str) -> None:
        """Take note of why a pod stays that a strategy would have moved."""
        name = each.pod.name
        if name not in self.kept and self.number_of(each) not in self._moved:
            self.kept[name] = Kept(
                pod=name,
                node=each.pod.node,
                strategy=why.strategy,
                profile=why.profile,
                why=reason,
            )

    def swap_what_waits(self) -> None:
        """Let pods change places that wait for each other's, through a free place.

        Of a plan's pairs at most `MOST_SWAPS` are tried; a note says so if there were more.
        """
        for number in list(self._waiting):
            for other in self._partners(number):
                if number not in self._waiting:
                    break
                if other not in self._waiting or self._refuses_two(number, other):
                    continue
                if self._tried == MOST_SWAPS:
                    self.notes.append(_TOO_MANY_SWAPS)
                self._tried += 1
                if self._tried > MOST_SWAPS:
                    return
                self._swap(number, other, self._waiting[number][1])

    def _partners(self, number: int) -> list[int]:
        """Return those behind a pod in the queue that want its place, and have one for it."""
        if number not in self._waiting:
            return []
        board, (accept, _) = self.scene.board, self._waiting[number]
        queue = list(self._waiting)
        others = np.array(queue[queue.index(number) + 1 :], dtype=np.intp)
        home, homes = int(board.rows[number]), board.rows[others]
        own, theirs = board.requests[number], board.requests[others]
        has_place = np.all((board.free[homes] + theirs >= own) | (own == 0), axis=1)
        gives_place = np.all((board.free[home] + own >= theirs) | (theirs == 0), axis=1)
        found = others[accept[homes] & (homes != home) & has_place & gives_place]
        return [other for other in found.tolist() if self._waiting[other][0][home]]

    def refusal(self, each: ListedPod) -> str:
        """Return why a pod may not be moved any more; empty if it may."""
        return self._limit(each) or self.scene.disruptions.refusal(each.pod)

    def _limit(self, each: ListedPod) -> str:
        limits, space, node = self._limits, each.name.namespace, each.node
        if limits.total is not None and len(self.moves) >= limits.total:
            return f"maxNoOfPodsToEvictTotal: {limits.total} are moved already"
        if limits.per_node is not None and self._from[f"node {node}"] >= limits.per_node:
            return f"maxNoOfPodsToEvictPerNode: {limits.per_node} leave {node} already"
        if limits.per_namespace is not None and self._from[space] >= limits.per_namespace:
            return f"maxNoOfPodsToEvictPerNamespace: {limits.per_namespace} of {space} move already"
        return ""

    def _put(self, number: int, source: int, target: int) -> None:
        self.scene.board.put(number, target)
        both = np.array([source, target])
        self.fullness[both] = self._fullness(both)

    def _fullness(self, rows: Rows) -> Floats:
        board = self.scene.board
        known = board.snapshot.columns
        columns = [known[name] for name in _SEEN if name in known]
        offered = board.snapshot.allocatable[rows][:, columns].astype(np.float64)
        free = board.free[rows][:, columns]
        shares: Floats = 1 - np.divide(free, offered, out=np.zeros_like(offered), where=offered > 0)
        fullest: Floats = shares.max(axis=1, initial=0.0)
        return fullest

    def _go(self, step: Step, why: Why) -> None:
        """Make a move."""
        name_of = self.scene.board.snapshot.name_of
        each = self.pods[step.number]
        self.scene.disruptions.spend(each.pod)
        self._record(each, name_of(step.target), why, source=name_of(step.source))
        self._moved.add(step.number)
        self._waiting.pop(step.number, None)
        self._steps.append(step)
        if step.target != step.source:
            self._put(step.number, step.source, step.target)

    def _record(self, each: ListedPod, target: str | None, why: Why, source: str = "") -> None:
        self._from[f"node {each.node}"] += 1
        self._from[each.name.namespace] += 1
        self.kept.pop(each.name, None)
        self.moves.append(
            Move(
                pod=each.name,
                uid=each.pod.uid,
                source=source or each.node,
                target=target,
                strategy=why.strategy,
                profile=why.profile,
                reason=why.reason,
                improves=why.improves,
            )
        )

    def _refuses_two(self, number: int, other: int) -> bool:
        return bool(self.refusal(self.pods[number]) or self.refusal(self.pods[other]))

    def _swap(self, number: int, other: int, why: Why) -> None:
        """Let two pods change places if there is a way."""
        board, disruptions = self.scene.board, self.scene.disruptions
        goals = {number: int(board.rows[other]), other: int(board.rows[number])}
        found = order(board, goals, disruptions)
        whys = {number: why, other: self._waiting[other][1]}
        total = self._limits.total
        has_room = total is None or len(self.moves) + len(found.steps) <= total
        take_back(board, found, disruptions)
        if found.stuck or not has_room:
            return
        for step in found.steps:
            self._go(step, whys[step.number])


_SEEN = ("cpu", "memory")
_MOST_WAITING = 500
