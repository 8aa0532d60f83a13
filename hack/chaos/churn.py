"""Pods that come in bursts and go again, so that capacity moves all the while."""

from __future__ import annotations

import random
import threading
import time

from hack.chaos.book import Book
from hack.chaos.pods import Pods
from hack.chaos.scale import LEVEL, POD_CPU, Scale

_BURSTS = 60
_PACE = 0.95  # of the storm's time is enough to create all pods
_SPREAD = (0.3, 1.7)  # of a burst's size and of the time to the next, around the mean
_GRACEFUL = 0.3  # share of the deletions that KWOK carries out


class Churn:
    """Creates the storm's pods, burst by burst, and deletes others to make room for them.

    Attributes:
        created: how many so far.
    """

    def __init__(self, seed: int, scale: Scale, book: Book, pods: Pods) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._scale = scale
        self._book = book
        self._pods = pods
        self.created = 0

    def blow(self, stop: threading.Event) -> None:
        """Goes on until all are created, or it is stopped."""
        size, pause = self._scale.pods / _BURSTS, _PACE * self._scale.seconds / _BURSTS
        next_one = time.monotonic()
        while self.created < self._scale.pods and not stop.is_set():
            left = self._scale.pods - self.created
            count = min(left, max(1, round(size * self._rng.uniform(*_SPREAD))))
            self._burst([self._rng.choice(POD_CPU) for _ in range(count)])
            next_one += pause * self._rng.uniform(*_SPREAD)
            stop.wait(max(0.0, next_one - time.monotonic()))

    def _burst(self, sizes: list[int]) -> None:
        if not self._make_room(sum(sizes)):
            return  # Nobody is bound at present: more would wait for room for ever.
        for cpu in sizes:
            self.created += 1
            self._pods.create(f"storm-{self.created}", cpu)

    def _make_room(self, cpu: int) -> bool:
        """Deletes bound pods, whoever they are; returns False if these are too few."""
        excess = self._book.taken() + cpu - int(LEVEL * self._scale.cpu)
        bound = [pod for pod in self._book.pods() if pod.node]
        self._rng.shuffle(bound)
        for pod in bound:
            if excess <= 0:
                break
            grace = 1 if self._rng.random() < _GRACEFUL else 0
            self._pods.delete(pod, grace)
            excess -= pod.cpu
        return excess <= 0
