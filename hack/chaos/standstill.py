"""Processes that stand still for a while, and wrong clocks, without a restart."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle

from hack.bed.bed import Bed
from hack.promises.history import Outage

SHORTEST, USUAL, LONGEST = 5.0, 8.0, 40.0
"""Seconds of a standstill; mostly nearer to the usual value."""

_BEHIND = 1.5
"""Seconds for which watches stay silent after Reserver resumes."""

_LEASE = (18.0, 25.0)
"""Seconds of a leader's standstill, so that another replica leads meanwhile."""

_WRONG = (1.5, 90.0, 3_600.0, 30 * 86_400.0)
"""Errors of the clock, in seconds: below the tolerated drift, and above."""

_WRONG_FOR = (3.0, 20.0)
"""Seconds of an error: less than the probation of a jump (ADR 5)."""


class Standstill:
    """Makes one process after the other stand still.

    Attributes:
        outages: times in which Reserver, or a dependency, stood still.
        pauses: times in which no client could call Reserver.
    """

    def __init__(self, rng: random.Random, bed: Bed) -> None:
        self._rng = rng
        self._bed = bed
        self._pause = threading.Event()
        self.outages: list[Outage] = []
        self.pauses: list[Outage] = []
        frozen = ["reserver", "kube-apiserver", "etcd", bed.scheduler]
        rng.shuffle(frozen)
        self._frozen = cycle(frozen)
        self._parted = cycle((("calls",), ("answers",), ("calls", "answers")))

    def freeze(self, name: str) -> str:
        """Stop a process, the next one if none is named, for 5 to 40 seconds.

        Watch events that the API server sent meanwhile reach Reserver a second after it resumes, as
        from a network that has stood still as well.
        """
        name = name or next(self._frozen)
        is_calling = name == self._bed.scheduler
        with ExitStack() as stack:
            stack.enter_context(_noted(self.pauses if is_calling else self.outages))
            if name == "reserver":
                stack.enter_context(self._silence())
            self._signal(name, signal.SIGSTOP)
            stack.callback(self._signal, name, signal.SIGCONT)
            self._pause.wait(self._rng.triangular(SHORTEST, LONGEST, USUAL))
        return f"{name} frozen"

    @contextmanager
    def _silence(self) -> Iterator[None]:
        proxy = self._bed.proxy
        assert proxy is not None  # noqa: S101 (for mypy)
        proxy.hush(silent=True)
        try:
            yield
            self._pause.wait(_BEHIND)
        finally:
            proxy.hush(silent=False)

    def freeze_leader(self) -> str:
        """Stop a leader until another replica leads."""
        with _noted(self.outages), self._bed.reserver.leader_stopped():
            self._pause.wait(self._rng.uniform(*_LEASE))
        return "leader frozen"

    def part(self, way: str = "") -> str:
        """Part kube-scheduler from Reserver, one way or both, then deliver or drop the calls."""
        ways = (way,) if way else next(self._parted)
        service = self._bed.reserver.service
        assert service is not None  # noqa: S101 (for mypy)
        with _noted(self.pauses):
            service.part(calls="calls" in ways, answers="answers" in ways)
            try:
                self._pause.wait(self._rng.triangular(SHORTEST, LONGEST, USUAL))
            finally:
                service.heal(drop=self._rng.random() < 0.5)  # noqa: PLR2004 (a coin)
        return f"parted: no {' and no '.join(ways)}"

    def set_clock_wrong(self, _: str = "") -> str:
        """Make Reserver's wall clock jump, and jump back within the probation."""
        clock = self._bed.clock
        assert clock is not None  # noqa: S101 (for mypy)
        clock.set_wrong(self._rng.choice(_WRONG) * self._rng.choice((-1, 1)))
        try:
            self._pause.wait(self._rng.uniform(*_WRONG_FOR))
        finally:
            clock.set_wrong(0.0)
        return "clock wrong"

    def _signal(self, name: str, number: signal.Signals) -> None:
        if name == "reserver":
            self._bed.reserver.signal(number)
        else:
            self._bed.plane.signal(name, number)


@contextmanager
def _noted(spans: list[Outage]) -> Iterator[None]:
    since = time.time()
    try:
        yield
    finally:
        spans.append(Outage(since, time.time()))
