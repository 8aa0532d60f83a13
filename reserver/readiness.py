"""Whether this process knows the cluster well enough to decide on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from reserver.kube.loops.lease import Lease
from reserver.kube.watch.pulse import BEAT_S, Pulse
from reserver.kube.watch.reflector import STALE_AFTER_S, Reflector
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessReadiness:
    """Whether this process knows the cluster well enough to decide on it.

    Attributes:
        state: what is decided on.
        reflectors: what keeps it up to date.
        lease: what has to be held to answer; None where nobody else may answer.
        pulse: whether this process stood still, and may lack what happened meanwhile.
    """

    state: State
    reflectors: Sequence[Reflector]
    lease: Lease | None = None
    pulse: Pulse = field(default_factory=Pulse)

    async def beat(self) -> None:
        """Watch whether this process stood still, until cancelled."""
        while True:
            self._look_after()
            await asyncio.sleep(BEAT_S)

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything, for as long as that is excused."""
        self._look_after()
        with suppress(TimeoutError):
            async with asyncio.timeout(STALE_AFTER_S):
                while not all(reflector.current.is_set() for reflector in self.reflectors):
                    for reflector in self.reflectors:  # Meanwhile the first may have broken again.
                        await reflector.current.wait()

    def _look_after(self) -> None:
        """If this process stood still, treat the views as incomplete since then."""
        seconds = self.pulse.stood_still()
        if not seconds:
            return
        log.warning("stood still, asking what happened meanwhile", seconds=round(seconds, 1))
        for reflector in self.reflectors:
            reflector.doubt(seconds)

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps us from deciding on the state."""
        self._look_after()
        if self.lease is not None and (obstacle := self.lease.obstacle()):
            return (obstacle,)
        obstacles = tuple(filter(None, (reflector.obstacle() for reflector in self.reflectors)))
        if not obstacles and not self.state.is_complete:
            return ("all is listed, what happened before is being read",)
        return obstacles
