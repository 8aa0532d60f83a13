"""A tenant of another namespace whose pods have the names, sizes and labels of owners."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from hack.chaos.book import Book, SeenPod
from hack.chaos.groups import APP, Groups
from hack.chaos.pods import Pods

_PAUSE = (0.3, 1.0)  # seconds from one namesake to the next
_MOST = 6  # namesakes at a time, as they compete with all pods for free room


class Strangers:
    """The pods of another namespace on the nodes of a book, for its account of their room."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._pods: dict[str, SeenPod] = {}

    def pods(self) -> list[SeenPod]:
        """Return all pods that exist."""
        return list(self._pods.values())

    def pod_seen(self, pod: SeenPod) -> None:
        """Update a pod that exists."""
        before = self._pods.get(pod.name)
        if before is not None and before.uid != pod.uid:
            self.pod_gone(pod.name)
            before = None
        if pod.node and (before is None or not before.node):
            self._book.take(pod.node, pod.cpu)
        self._pods[pod.name] = pod

    def pod_gone(self, name: str) -> None:
        """Remove a pod that no longer exists."""
        pod = self._pods.pop(name, None)
        if pod is not None and pod.node:
            self._book.take(pod.node, -pod.cpu)

    pod_missed = pod_gone


class Namesakes:
    """Creates namesakes of owners whose seats are free, and deletes them after a while.

    Attributes:
        created: number of namesakes.
    """

    def __init__(self, seed: int, book: Book, groups: Groups, pods: Pods) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._book = book
        self._groups = groups
        self._pods = pods
        self._leave: deque[Callable[[], None]] = deque()
        self.created = 0

    def come(self, stop: threading.Event) -> None:
        """Create them until stopped, then delete the last ones."""
        while not stop.wait(self._rng.uniform(*_PAUSE)):
            if coming := [*self._of_pods(), *self._of_groups()]:
                self._rng.choice(coming)()
                self.created += 1
            if len(self._leave) > _MOST:
                self._leave.popleft()()
        for leave in self._leave:
            leave()

    def _of_pods(self) -> list[Callable[[], None]]:
        free = [hold.terms for hold in self._book.live()]
        return [partial(self._create, terms.owner, terms.cpu) for terms in free]

    def _of_groups(self) -> list[Callable[[], None]]:
        free = [group for group in self._groups if any(group.left.values())]
        return [partial(self._replicate, each.name, each.cpu, each.app) for each in free]

    def _create(self, name: str, cpu: int) -> None:
        self._pods.create(name, cpu)
        self._leave.append(partial(self._pods.remove, name))

    def _replicate(self, name: str, cpu: int, app: str) -> None:
        self._pods.replicate(name, cpu, 1, {APP: app})
        self._leave.append(partial(self._pods.disband, name))
