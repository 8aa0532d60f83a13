"""The scheduling queue: who is tried next, who waits, and what wakes whom.

kube-scheduler's backend/queue/scheduling_queue.go and backoff_queue.go, with the features that are
on by default since 1.33 (SchedulerPopFromBackoffQ, queueing hints). Times are seconds of a
monotonic clock, given by the caller.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from dataclasses import dataclass, field
from enum import Enum, auto

from reserver.sim.scheduler.objects import PodView

LEFTOVER_SECONDS = 300.0
"""Seconds after which a pod is tried again though nothing happened."""


class Happening(Enum):
    """What may make a pod schedulable."""

    NODE_CHANGED = auto()
    POD_GONE = auto()
    """An assigned pod was deleted, or will not be after all."""
    POD_ASSIGNED = auto()
    """An assigned pod appeared or changed."""
    POD_CHANGED = auto()
    """The waiting pod itself changed, in a way that only an extender may care for."""
    SPEC_CHANGED = auto()
    """The waiting pod's labels or spec changed."""


_ROOM = frozenset({Happening.NODE_CHANGED, Happening.POD_GONE, Happening.SPEC_CHANGED})
"""What may help a pod that kube-scheduler's own filters refused."""


class State(Enum):
    """Where a pod stands."""

    ACTIVE = auto()
    BACKOFF = auto()
    ERROR_BACKOFF = auto()
    """Backing off after an error: never tried early."""
    UNSCHEDULABLE = auto()
    IN_FLIGHT = auto()


@dataclass(slots=True)
class Waiting:
    """A pod in the queue.

    Attributes:
        view: the pod as it is now.
        since: when it came; earlier ones of the same priority go first.
        state: where it stands.
        refusals: attempts that found it unschedulable.
        errors: attempts in a row that failed otherwise.
        by_extender: whether an extender took nodes away in the last attempt.
        until: when its back-off ends.
        moved: when it last changed its state.
        missed: what happened while it was being tried.
    """

    view: PodView
    since: float
    state: State = State.ACTIVE
    refusals: int = 0
    errors: int = 0
    by_extender: bool = False
    until: float = 0.0
    moved: float = 0.0
    missed: set[Happening] = field(default_factory=set)

    def is_helped_by(self, happening: Happening) -> bool:
        """Whether another attempt is worthwhile (`isPodWorthRequeuing`)."""
        return self.by_extender or happening in _ROOM


class SchedulingQueue:
    """All pods that wait for a node.

    Args:
        initial_backoff: seconds after the first failure.
        max_backoff: seconds after many.
    """

    def __init__(self, initial_backoff: float, max_backoff: float) -> None:
        self._initial = initial_backoff
        self._max = max_backoff
        self._pods: dict[str, Waiting] = {}
        self._active: list[tuple[int, float, int, Waiting]] = []
        self._order = itertools.count()
        self.changed = asyncio.Event()
        """Set when there may be something to pop."""

    def __len__(self) -> int:
        """Return how many pods wait or are being tried."""
        return len(self._pods)

    def add(self, view: PodView, now: float) -> None:
        """Take a new pod in; it is tried as soon as possible."""
        waiting = Waiting(view, since=now)
        self._pods[view.pod.uid] = waiting
        self._activate(waiting, now)

    def update(self, view: PodView, now: float) -> None:
        """Take note of a change of a pod that waits; one that is unknown is added."""
        waiting = self._pods.get(view.pod.uid)
        if waiting is None:
            self.add(view, now)
            return
        before, waiting.view = waiting.view, view
        self._wake(waiting, _own_happening(before, view), now)

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self._pods.pop(uid, None)

    def move(self, happening: Happening, now: float, up_to: float = math.inf) -> None:
        """Wake all pods that something may help (`moveAllToActiveOrBackoffQueue`).

        Args:
            happening: what happened.
            now: when.
            up_to: the highest priority that it may help.
        """
        for waiting in self._pods.values():
            if waiting.view.pod.priority <= up_to:
                self._wake(waiting, happening, now)

    def pop(self, now: float) -> Waiting | None:
        """Take out the pod to try next; None if nobody may be tried now.

        If nobody is active, one that still backs off is taken: the back-off is there to spare a
        busy scheduler.
        """
        self._flush(now)
        while self._active:
            waiting = heapq.heappop(self._active)[-1]
            if self._pods.get(waiting.view.pod.uid) is waiting and waiting.state is State.ACTIVE:
                return self._take(waiting, now)
        backing_off = [w for w in self._pods.values() if w.state is State.BACKOFF]
        if not backing_off:
            return None
        return self._take(min(backing_off, key=lambda w: (w.until, *_rank(w))), now)

    def nominated(self) -> list[PodView]:
        """Return the waiting pods that are nominated to a node."""
        return [w.view for w in self._pods.values() if w.view.pod.nominated_node]

    def refused(self, waiting: Waiting, now: float, *, by_extender: bool) -> None:
        """Put a pod back that no node can take, unless it went meanwhile."""
        if waiting.view.pod.uid not in self._pods:
            return
        waiting.refusals += 1
        waiting.errors = 0
        waiting.by_extender = by_extender
        waiting.until = self._backoff_end(now, waiting.refusals)
        self._set(waiting, State.UNSCHEDULABLE, now)
        for happening in waiting.missed:
            self._wake(waiting, happening, now)

    def failed(self, waiting: Waiting, now: float) -> None:
        """Put a pod back whose attempt, or binding, broke down."""
        waiting.errors += 1
        waiting.by_extender = False
        waiting.until = self._backoff_end(now, waiting.errors)
        self._pods[waiting.view.pod.uid] = waiting
        self._set(waiting, State.ERROR_BACKOFF, now)

    def next_due(self) -> float:
        """Return when a pod becomes due by itself; infinity if none does."""
        return min((self._due(waiting) for waiting in self._pods.values()), default=math.inf)

    def _due(self, waiting: Waiting) -> float:
        if waiting.state in {State.BACKOFF, State.ERROR_BACKOFF}:
            return waiting.until
        if waiting.state is State.UNSCHEDULABLE:
            return waiting.moved + LEFTOVER_SECONDS
        return math.inf

    def _flush(self, now: float) -> None:
        for waiting in self._pods.values():
            if self._due(waiting) <= now:
                self._activate(waiting, now)

    def _wake(self, waiting: Waiting, happening: Happening, now: float) -> None:
        if waiting.state is State.IN_FLIGHT:
            waiting.missed.add(happening)
        elif waiting.state is State.UNSCHEDULABLE and waiting.is_helped_by(happening):
            if waiting.until > now:
                self._set(waiting, State.BACKOFF, now)
            else:
                self._activate(waiting, now)

    def _activate(self, waiting: Waiting, now: float) -> None:
        self._set(waiting, State.ACTIVE, now)
        heapq.heappush(self._active, (*_rank(waiting), next(self._order), waiting))

    def _take(self, waiting: Waiting, now: float) -> Waiting:
        waiting.missed.clear()
        self._set(waiting, State.IN_FLIGHT, now)
        return waiting

    def _set(self, waiting: Waiting, state: State, now: float) -> None:
        waiting.state = state
        waiting.moved = now
        self.changed.set()

    def _backoff_end(self, now: float, attempts: int) -> float:
        """Return when the back-off ends: with the whole second in which its time is over.

        So pods that failed in the same second go by priority again (`alignToWindow`).
        """
        seconds = min(self._initial * 2.0 ** (attempts - 1), self._max)
        return math.floor(now + seconds) + 1.0


def _rank(waiting: Waiting) -> tuple[int, float]:
    """Higher priority first, then who came first (the PrioritySort plugin)."""
    return -waiting.view.pod.priority, waiting.since


def _own_happening(before: PodView, after: PodView) -> Happening:
    same_labels = before.content["metadata"].get("labels") == after.content["metadata"].get(
        "labels"
    )
    if same_labels and before.content["spec"] == after.content["spec"]:
        return Happening.POD_CHANGED
    return Happening.SPEC_CHANGED
