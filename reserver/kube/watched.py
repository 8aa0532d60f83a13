"""How well the watches show the cluster, and what there is to count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from reserver.kube.loops.cleaner import Cleaner
from reserver.kube.loops.events import Recorder
from reserver.kube.loops.lease import Lease
from reserver.kube.loops.placer import Placer
from reserver.kube.loops.quotas import QuotaWriter
from reserver.kube.loops.requeue import Requeue
from reserver.kube.loops.waker import Waker
from reserver.kube.stores.stores import Stores
from reserver.kube.watch.pulse import BEAT_S, Pulse
from reserver.kube.watch.quotas import QuotaCache
from reserver.kube.watch.reflector import STALE_AFTER_S, Reflector
from reserver.reservations.view import LedgerView
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of the watches and the store.

    Attributes:
        lease: what has to be held to answer; None where nobody else may answer.
        pulse: whether this process stood still, and may lack what happened meanwhile.
    """

    state: State
    stores: Stores
    recorder: Recorder
    cleaner: Cleaner
    waker: Waker
    requeue: Requeue
    placer: Placer
    quotas: tuple[QuotaCache, QuotaWriter]
    reflectors: tuple[Reflector, ...]
    clock: Callable[[], float]
    lease: Lease | None = None
    pulse: Pulse = field(default_factory=Pulse)

    @property
    def ledger(self) -> LedgerView:
        """The ledger of reservations, at this moment."""
        self.state.ledger.advance(self.clock())
        return self.state.ledger

    @property
    def is_ready(self) -> bool:
        """Whether calls are decided."""
        return not self.obstacles()

    async def beat(self) -> None:
        """Find out whether this process stood still, for ever."""
        while True:
            self._look_after()
            await asyncio.sleep(BEAT_S)

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything, but not longer than is excused."""
        self._look_after()
        with suppress(TimeoutError):
            async with asyncio.timeout(STALE_AFTER_S):
                while not all(reflector.current.is_set() for reflector in self.reflectors):
                    for reflector in self.reflectors:  # Meanwhile the first may have broken again.
                        await reflector.current.wait()

    def _look_after(self) -> None:
        """Doubt all that is known if this process stood still: it is as old as that lasted."""
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

    def invalid_entries(self) -> Iterable[tuple[str, int]]:
        """Yield each part of the store with the number of entries not enforced."""
        return (("/".join(name), count) for name, count in self.stores.problem_counts())

    def counters(self) -> Iterable[tuple[str, str, int]]:
        """Yield name, help text and value of what only grows."""
        yield (
            "reserver_lists",
            "Lists of a watched collection.",
            sum(reflector.lists for reflector in self.reflectors),
        )
        yield (
            "reserver_watches",
            "Watches begun, resumed ones included.",
            sum(reflector.watches for reflector in self.reflectors),
        )
        yield "reserver_problems", "Entries reported as not enforced.", self.recorder.reported
        yield "reserver_store_edits", "Edits that tidied the store.", self.cleaner.edits
        yield (
            "reserver_store_edits_lost",
            "Edits that were not made because somebody wrote the key in between.",
            self.cleaner.lost,
        )
        yield (
            "reserver_status_writes",
            "Writes of what became of entries.",
            sum(store.statuses.writes for store in self.stores),
        )
        yield "reserver_quota_status_writes", "Writes of what is used.", self.quotas[1].writes
        yield "reserver_placements", "Reservations placed, or placed anew.", self.placer.placed
        yield "reserver_woken_pods", "Waiting pods sent back to be tried.", self.waker.woken
        yield (
            "reserver_unreadable_objects",
            "Objects that were passed over because they could not be read.",
            sum(reflector.view.unreadable for reflector in self.reflectors),
        )
