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
from reserver.rebalance.plan import Kept
from reserver.rebalance.policy import EvictionLimits
from reserver.rebalance.scene import Scene, Why

Floats = NDArray[np.float64]


class Stage:
    """A scene, and what became of it so far.

    Attributes:
        scene: the cluster; its board is as the moves so far have made it.
        inventory: as it was before.
        pods: what is known of each pod of the board, by its number.
        steps: the moves so far, in their order.
        whys: why each of those is made.
        kept: what stays that was to move, by name.
        notes: what else people have to know.
    """

    def __init__(self, scene: Scene, inventory: Inventory, limits: EvictionLimits) -> None:
        """Begin with nothing moved."""
        self.scene = scene
        self.inventory = inventory
        by_uid = {each.pod.uid: each for each in inventory.pods}
        self.pods: tuple[ListedPod, ...] = tuple(by_uid[pod.uid] for pod in scene.board.pods)
        self.steps: list[Step] = []
        self.whys: list[Why] = []
        self.kept: dict[PodName, Kept] = {}
        self.notes: list[str] = []
        self._limits = limits
        self._from: Counter[str] = Counter()
        self._moved: set[int] = set()
        self._waiting: dict[int, tuple[Bools, Why]] = {}

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
        refusal = self.refusal(number)
        if refusal:
            self._keep(number, why, refusal)
            return False
        board = self.scene.board
        rows = np.flatnonzero(board.targets(number) & accept)
        if not len(rows):
            if waits and len(self._waiting) < _MOST_WAITING:
                self._waiting[number] = (accept, why)
            self._keep(number, why, "no node that would be better has room for it")
            return False
        scores = np.zeros(len(rows)) if score is None else score[rows]
        best = rows[np.lexsort((rows, self.fullness(rows), scores))[0]]
        self._record(Step(number, int(board.rows[number]), int(best)), why)
        board.put(number, int(best))
        return True

    def mark(self) -> int:
        """Return a mark to go back to."""
        return len(self.steps)

    def back(self, mark: int) -> None:
        """Undo all moves since a mark."""
        while len(self.steps) > mark:
            number, source, _ = self.steps.pop()
            self.whys.pop()
            pod = self.pods[number].pod
            self.scene.board.put(number, source)
            self.scene.disruptions.give_back(pod)
            self._from[f"node {pod.node}"] -= 1
            self._from[pod.name.namespace] -= 1
            self._moved.discard(number)

    def keep(self, number: int, why: Why, reason: str) -> None:
        """Take note of why a pod stays that a strategy would have moved."""
        if number not in self._moved:
            self._keep(number, why, reason)

    def swap_what_waits(self) -> None:
        """Let pods change places that wait for each other's, through a free place."""
        board = self.scene.board
        for number, (accept, why) in list(self._waiting.items()):
            home = int(board.rows[number])
            for other, (others, _) in list(self._waiting.items()):
                away = int(board.rows[other])
                if number not in self._waiting or other not in self._waiting or other == number:
                    continue
                if accept[away] and others[home] and not self._refuses_two(number, other):
                    self._swap(number, other, why)

    def refusal(self, number: int) -> str:
        """Return why a pod may not be moved any more; empty if it may."""
        pod, limits = self.pods[number].pod, self._limits
        if limits.total is not None and len(self.steps) >= limits.total:
            return f"maxNoOfPodsToEvictTotal: {limits.total} are moved already"
        if limits.per_node is not None and self._from[f"node {pod.node}"] >= limits.per_node:
            return f"maxNoOfPodsToEvictPerNode: {limits.per_node} leave {pod.node} already"
        space = pod.name.namespace
        if limits.per_namespace is not None and self._from[space] >= limits.per_namespace:
            return f"maxNoOfPodsToEvictPerNamespace: {limits.per_namespace} of {space} move already"
        return self.scene.disruptions.refusal(pod)

    def fullness(self, rows: Rows) -> Floats:
        """Return how full nodes are: the fullest of cpu and memory, pods and holds together."""
        board = self.scene.board
        known = board.snapshot.columns
        columns = [known[name] for name in _SEEN if name in known]
        offered = board.snapshot.allocatable[rows][:, columns].astype(np.float64)
        free = board.free[rows][:, columns]
        shares: Floats = 1 - np.divide(free, offered, out=np.zeros_like(offered), where=offered > 0)
        fullest: Floats = shares.max(axis=1, initial=0.0)
        return fullest

    def _record(self, step: Step, why: Why) -> None:
        pod = self.pods[step.number].pod
        self.scene.disruptions.spend(pod)
        self._from[f"node {pod.node}"] += 1
        self._from[pod.name.namespace] += 1
        self._moved.add(step.number)
        self._waiting.pop(step.number, None)
        self.kept.pop(pod.name, None)
        self.steps.append(step)
        self.whys.append(why)

    def _keep(self, number: int, why: Why, reason: str) -> None:
        pod = self.pods[number].pod
        self.kept.setdefault(
            pod.name,
            Kept(
                pod=pod.name,
                node=pod.node,
                strategy=why.strategy,
                profile=why.profile,
                why=reason,
            ),
        )

    def _refuses_two(self, number: int, other: int) -> bool:
        return bool(self.refusal(number) or self.refusal(other))

    def _swap(self, number: int, other: int, why: Why) -> None:
        """Let two pods change places if there is a way."""
        board, disruptions = self.scene.board, self.scene.disruptions
        goals = {number: int(board.rows[other]), other: int(board.rows[number])}
        found = order(board, goals, disruptions)
        whys = {number: why, other: self._waiting[other][1]}
        room = (
            self._limits.total is None or len(self.steps) + len(found.steps) <= self._limits.total
        )
        take_back(board, found, disruptions)
        if found.stuck or not room:
            return
        for step in found.steps:
            self._record(step, whys[step.number])
            board.put(step.number, step.target)


_SEEN = ("cpu", "memory")
_MOST_WAITING = 500
