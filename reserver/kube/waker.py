"""The waker: sends waiting pods back to kube-scheduler when less is held than before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from reserver.kube.requeue import Requeue
from reserver.scheduling.state import State
from reserver.scheduling.wake import wake

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 0.2
"""The longest that an expiry goes unnoticed by those who wait for it, in seconds."""


class Waker:
    """Sends waiting pods back to kube-scheduler when less is held than before.

    Attributes:
        woken: how many pods were sent back.
    """

    def __init__(self, requeue: Requeue, clock: Callable[[], float]) -> None:
        """Send pods back through a requeue; `clock` gives unix seconds."""
        self._requeue = requeue
        self._clock = clock
        self._freed: set[str] = set()
        self._something_freed = asyncio.Event()
        self.woken = 0

    def freed(self, node: str) -> None:
        """Take note that less is held on a node than before; returns at once."""
        self._freed.add(node)
        self._something_freed.set()

    async def run(self, state: State) -> None:
        """Wake pods until cancelled."""
        while True:
            state.ledger.advance(self._clock())
            if not self._freed:
                await self._wait()
                continue
            freed, self._freed = self._freed, set()
            self._something_freed.clear()
            effects = wake(freed, state, self._clock())
            self.woken += len(effects)
            for effect in effects:
                log.debug("waking", pod=str(effect.pod.name), effect=type(effect).__name__)
                self._requeue.send(effect)

    async def _wait(self) -> None:
        """Wait until something is freed, or something may have expired."""
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._something_freed.wait()
        except TimeoutError:
            return
