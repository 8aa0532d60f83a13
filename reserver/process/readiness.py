"""Readiness: whether this process may decide, and whether it could lead."""

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
"""Seconds between two beats."""

STOOD_STILL_S = 1.0
"""A longer gap between two beats means that the process stood still, in seconds."""

_LOOK_S = 30.0
_RETRY_S = 2.0


class Standby:
    """Whether this process could list all collections that a leader lists.

    A standby starts cold (docs/adr/0007), so it lists nothing in advance. It lists one object of
    each collection instead: a missing right or CRD is found before the leader ends.

    Attributes:
        obstacles: reasons why it cannot lead.
    """

    def __init__(self) -> None:
        """Begin unable to lead."""
        self.obstacles: tuple[str, ...] = ("it has not tried to list the cluster yet",)

    async def run(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Try periodically, until cancelled."""
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
    """Detects that this process stood still.

    When it resumes, it has not read the watch events sent meanwhile, and the first work may be a
    call. So calls check as well.

    Attributes:
        standstills: the number of standstills.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        """Begin; `now` returns seconds that advance while the process stands still."""
        self._now = now
        self._checked_at = now()
        self.standstills = 0

    def stood_still(self) -> float:
        """Return the seconds for which it stood still since the last check; 0 if it did not."""
        before, self._checked_at = self._checked_at, self._now()
        gap_s = self._checked_at - before
        if gap_s <= STOOD_STILL_S:
            return 0.0
        self.standstills += 1
        return gap_s


@dataclass(frozen=True, slots=True)
class ProcessReadiness:
    """Whether the caches of this process are complete enough to decide.

    Attributes:
        state: snapshot and ledger.
        reflectors: keep the caches up to date.
        client: asks etcd.
        lease: the Lease without which this process may not act; None for a single replica.
        pulse: detects that this process stood still, and may lack changes.
        standby: whether this process could lead; matters while another process leads.
        etcd: whether the caches are ahead of etcd.
    """

    state: State
    reflectors: Sequence[Reflector]
    client: ApiClient
    lease: Lease | None = None
    pulse: Pulse = field(default_factory=Pulse)
    standby: Standby = field(default_factory=Standby)
    etcd: EtcdCheck = field(default_factory=EtcdCheck)

    async def beat(self) -> None:
        """Check periodically whether this process stood still, until cancelled."""
        while True:
            self._check_pulse()
            await asyncio.sleep(BEAT_S)

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed changes.

        Raises:
            NotReady: changes are missing for longer than `STALE_AFTER_S`, of one watch or several.
        """
        self._check_pulse()
        if all([reflector.current.is_set() for reflector in self.reflectors]):  # noqa: C419 - faster
            return  # The usual case; a timeout costs more than this check.
        try:
            async with asyncio.timeout(STALE_AFTER_S):
                while not all(reflector.current.is_set() for reflector in self.reflectors):
                    for reflector in self.reflectors:  # Meanwhile another may have broken.
                        await reflector.current.wait()
        except TimeoutError:
            why = "; ".join(self.obstacles()) or "one watch after the other breaks"
            raise NotReady(f"reserver does not see the cluster yet: {why}") from None

    async def is_up_to_date(self) -> bool:
        """Wait for missed changes of watches; return whether calls may be decided."""
        try:
            await self.caught_up()
        except NotReady:
            return False
        return not self.obstacles()

    async def may_write(self, within_s: float = 0.0) -> bool:
        """Return whether an irreversible write is safe now; etcd is asked first."""
        return await self.is_up_to_date() and await self.agrees(within_s)

    async def agrees(self, within_s: float = AGREED_S) -> bool:
        """Return whether etcd, asked at most `within_s` ago, is not behind the caches.

        False also if this process stood still or may not decide any more once etcd has answered:
        meanwhile another process may have begun to decide.
        """
        before = self.pulse.standstills
        agreed = await self.etcd.agrees(self.client, self.reflectors, within_s)
        return agreed and not self.obstacles() and self.pulse.standstills == before

    def _check_pulse(self) -> None:
        """After a standstill of this process, treat the views as incomplete since then."""
        seconds = self.pulse.stood_still()
        if not seconds:
            return
        log.warning("stood still, asking what happened meanwhile", seconds=round(seconds, 1))
        for reflector in self.reflectors:
            reflector.distrust(seconds)

    def inability(self) -> tuple[str, ...]:
        """Return the reasons why a standby cannot lead, or why the leader cannot decide."""
        if self.lease is None or not self.lease.is_led_by_another:
            return self.obstacles()
        return self.standby.obstacles

    def obstacles(self) -> tuple[str, ...]:
        """Return the reasons why this process cannot decide on the state."""
        self._check_pulse()
        if self.lease is not None and (obstacle := self.lease.obstacle()):
            return (obstacle,)
        # Lists take a third less than generators, and this runs thrice for each pod.
        behind = [reflector for reflector in self.reflectors if not reflector.current.is_set()]
        obstacles = [why for reflector in behind if (why := reflector.obstacle())]
        if self.etcd.obstacle:
            obstacles.append(self.etcd.obstacle)
        if not obstacles and not self.state.is_complete:
            return ("all is listed, what happened before is being read",)
        return tuple(obstacles)

    def checks(self) -> Iterator[tuple[str, str]]:
        """Yield each condition by name, with the reason why it fails; empty if it is met."""
        if self.lease is not None:
            yield "lease", self.lease.obstacle() or ""
        for reflector in self.reflectors:
            yield f"watch{reflector.path.partition('?')[0]}", reflector.obstacle() or ""
        yield "etcd", self.etcd.obstacle
        yield "history", "" if self.state.is_complete else "what happened before is being read"
