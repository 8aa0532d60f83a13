"""Readiness: whether this process knows the cluster well enough to decide, or to lead."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from reserver.base.clock import elapsed
from reserver.errors import ApiError, NotReady
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.k8s.watch.back_in_time import AGREED_S, EtcdCheck
from reserver.k8s.watch.lag import STALE_AFTER_S
from reserver.k8s.watch.reflector import Reflector
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)

BEAT_S = 0.1
"""How often it looks, in seconds."""

STOOD_STILL_S = 1.0
"""With this long between two looks, the process stood still, in seconds."""

_LOOK_S = 30.0
_RETRY_S = 2.0


class Standby:
    """Whether this process could list all that a leader has to list.

    A standby starts cold (docs/adr/0007), so it lists nothing beforehand. It lists one object of
    each collection instead: a right or a CRD that is missing is found before the leader goes.

    Attributes:
        obstacles: what keeps it from leading.
    """

    def __init__(self) -> None:
        """Begin unable."""
        self.obstacles: tuple[str, ...] = ("it has not tried to list the cluster yet",)

    async def run(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Try again and again, until cancelled."""
        while True:
            found = [await _obstacle(client, reflector) for reflector in reflectors]
            self.obstacles = tuple(filter(None, found))
            await asyncio.sleep(_RETRY_S if self.obstacles else _LOOK_S)


async def _obstacle(client: ApiClient, reflector: Reflector) -> str:
    try:
        await client.get(reflector.path, {**reflector.selector, "limit": "1"})
        await reflector.require_kept(sys.maxsize)
    except ApiError as exc:
        if exc.is_absent and reflector.is_optional:
            return ""
        return f"{reflector} cannot be listed: {advice(exc)}"
    return ""


class Pulse:
    """Tells whether this process stood still.

    When it goes on, it has not yet read what the watches sent meanwhile, and the first thing to run
    may be a call. So calls look, too.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        """Begin to look; `now` is seconds that go on while the process stands still."""
        self._now = now
        self._looked_at = now()

    def stood_still(self) -> float:
        """Return how long it stood still since the last look, in seconds; 0 if it did not."""
        before, self._looked_at = self._looked_at, self._now()
        gap_s = self._looked_at - before
        return gap_s if gap_s > STOOD_STILL_S else 0.0


@dataclass(frozen=True, slots=True)
class ProcessReadiness:
    """Whether this process knows the cluster well enough to decide on it.

    Attributes:
        reflectors: what keeps it up to date.
        client: asks etcd.
        lease: what has to be held to answer; None where nobody else may answer.
        pulse: whether this process stood still, and may lack what happened meanwhile.
        standby: whether this process could lead; it counts while another process leads.
        etcd: whether the views are ahead of etcd.
    """

    state: State
    reflectors: Sequence[Reflector]
    client: ApiClient
    lease: Lease | None = None
    pulse: Pulse = field(default_factory=Pulse)
    standby: Standby = field(default_factory=Standby)
    etcd: EtcdCheck = field(default_factory=EtcdCheck)

    async def beat(self) -> None:
        """Watch whether this process stood still, until cancelled."""
        while True:
            self._look_after()
            await asyncio.sleep(BEAT_S)

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything.

        Raises:
            NotReady: something lacks for longer than is excused, of one watch after the other.
        """
        self._look_after()
        if all([reflector.current.is_set() for reflector in self.reflectors]):  # noqa: C419 - faster
            return  # As a rule; a timeout costs more than the look.
        try:
            async with asyncio.timeout(STALE_AFTER_S):
                while not all(reflector.current.is_set() for reflector in self.reflectors):
                    for reflector in self.reflectors:  # Meanwhile the first may have broken again.
                        await reflector.current.wait()
        except TimeoutError:
            why = "; ".join(self.obstacles()) or "one watch after the other breaks"
            raise NotReady(f"reserver does not see the cluster yet: {why}") from None

    async def is_up_to_date(self) -> bool:
        """Wait for what watches may have missed; return whether anything may be decided."""
        try:
            await self.caught_up()
        except NotReady:
            return False
        return not self.obstacles()

    async def may_write(self, within_s: float = 0.0) -> bool:
        """Return whether what cannot be undone may be written now; etcd is asked first."""
        return await self.is_up_to_date() and await self.agrees(within_s)

    async def agrees(self, within_s: float = AGREED_S) -> bool:
        """Return whether etcd, asked now or a moment ago, is not behind what is known."""
        return await self.etcd.agrees(self.client, self.reflectors, within_s)

    def _look_after(self) -> None:
        """If this process stood still, treat the views as incomplete since then."""
        seconds = self.pulse.stood_still()
        if not seconds:
            return
        log.warning("stood still, asking what happened meanwhile", seconds=round(seconds, 1))
        for reflector in self.reflectors:
            reflector.distrust(seconds)

    def inability(self) -> tuple[str, ...]:
        """Return what keeps us from leading, or, if we lead, from deciding."""
        if self.lease is None or not self.lease.is_led_by_another:
            return self.obstacles()
        return self.standby.obstacles

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps us from deciding on the state."""
        self._look_after()
        if self.lease is not None and (obstacle := self.lease.obstacle()):
            return (obstacle,)
        # A list takes a third less than a generator, and this is asked twice for each pod.
        obstacles = [why for reflector in self.reflectors if (why := reflector.obstacle())]
        if self.etcd.obstacle:
            obstacles.append(self.etcd.obstacle)
        if not obstacles and not self.state.is_complete:
            return ("all is listed, what happened before is being read",)
        return tuple(obstacles)

    def checks(self) -> Iterator[tuple[str, str]]:
        """Yield each condition by its name, with what keeps it from being met; empty if nothing."""
        if self.lease is not None:
            yield "lease", self.lease.obstacle() or ""
        for reflector in self.reflectors:
            yield f"watch{reflector.path.partition('?')[0]}", reflector.obstacle() or ""
        yield "etcd", self.etcd.obstacle
        yield "history", "" if self.state.is_complete else "what happened before is being read"
