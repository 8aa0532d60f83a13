"""Pods that are created in bursts and deleted, so that capacity changes all the time."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor

from hack.chaos.book import Book
from hack.chaos.pods import Pods
from hack.chaos.scale import LEVEL, POD_CPU, Scale

_PAUSE = (0.3, 2.2)  # seconds from one burst to the next
_PACE = 0.9  # of the storm's time is enough to create all pods
_ODD = (0.4, 1.6)  # a burst's size, around what is due
_LARGEST = 200  # pods in a burst, however much is due
_GRACEFUL = 0.3  # share of the deletions that KWOK carries out
_CONNECTIONS = 4
_PREFIX = "storm-"


class Churn:
    """Creates the storm's pods, burst by burst, and deletes others to make room for them.

    Attributes:
        created: number of created pods.
    """

    def __init__(self, seed: int, scale: Scale, book: Book, pods: Pods) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._scale = scale
        self._book = book
        self._pods = pods
        self.created = 0

    @property
    def is_over(self) -> bool:
        """Whether all pods have been created."""
        return self.created >= self._scale.pods

    def blow(self, stop: threading.Event) -> None:
        """Create pods until all exist, or it is stopped; late bursts are larger."""
        rate = self._scale.pods / (_PACE * self._scale.seconds)
        began = time.monotonic()
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            while not self.is_over and not stop.is_set():
                due = rate * (time.monotonic() - began) - self.created
                count = round(due * self._rng.uniform(*_ODD))
                count = min(count, _LARGEST, self._scale.pods - self.created)
                self._burst([self._rng.choice(POD_CPU) for _ in range(count)], pool)
                stop.wait(self._rng.uniform(*_PAUSE))

    def _burst(self, sizes: list[int], pool: Executor) -> None:
        """Create pods of these sizes, if there is room or deletions can make it."""
        if not self._make_room(sum(sizes), pool):
            return  # All pending pods are owners, or are being deleted.
        names = [f"{_PREFIX}{self.created + number}" for number in range(1, len(sizes) + 1)]
        list(pool.map(self._pods.create, names, sizes))
        self.created += len(sizes)

    def _make_room(self, cpu: int, pool: Executor) -> bool:
        """Delete bound pods at random and pending ones of the churn; return False if too few."""
        excess = self._book.taken() + cpu - int(LEVEL * self._scale.cpu)
        pods = self._book.pods()
        self._rng.shuffle(pods)
        bound = [pod for pod in pods if pod.node]
        left = [pod for pod in pods if not pod.node and pod.name.startswith(_PREFIX)] + bound
        going = []
        while excess > 0 and left:
            going.append(left.pop())
            excess -= going[-1].cpu
        graces = [1 if self._rng.random() < _GRACEFUL else 0 for _ in going]
        list(pool.map(self._pods.delete, going, graces))
        return excess <= 0
