"""The reminder: warns of holds with unclaimed slots that will soon expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.k8s.objects.times import show_moment
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

_PASS_EVERY_S = 30.0
"""Most seconds between two passes over all reservations."""

_OF_LIFE = 0.5
"""Share of a lifetime that may be left at a warning; else short holds would warn at once."""


@dataclass(eq=False, repr=False)
class ExpiryWarnings:
    """Warns once of each hold that will soon expire, or be released as idle.

    Attributes:
        before_s: seconds between the warning and the end; 0 for no warnings.
        clock: returns unix seconds.
        warn: called with the reservation, a message, and the start of its idle time in unix seconds
            if it ends because of that; 0 if it expires.
        expiring: the editions of the reservations that end soon, as of the last pass.
    """

    before_s: float
    clock: Callable[[], float]
    warn: Callable[[Reservation, str, float], None]
    expiring: frozenset[str] = frozenset()

    async def run(self, ledger: LedgerView) -> None:
        """Warn until cancelled."""
        while True:
            with quarantined("pass", "reminder"):
                await self.look(ledger, Pacer())
            often_s = self.before_s / 4 if self.before_s > 0 else _PASS_EVERY_S
            await asyncio.sleep(min(_PASS_EVERY_S, max(1.0, often_s)))

    async def look(self, ledger: LedgerView, pacer: Pacer) -> None:
        """Check all reservations once."""
        expiring = set[str]()
        for ref in ledger.refs() if self.before_s > 0 else ():
            now = self.clock()
            reservation, since = ledger.get(ref), ledger.since(ref)
            ends_at, idle_since = ledger.ends_at(ref), 0.0
            if reservation and ends_at != reservation.expires_at:
                since = idle_since = ledger.idle_since(ref)
            is_active = ledger.phase(ref) is Phase.ACTIVE
            if is_active and reservation and not idle_since and reservation.recurs:
                is_active = False  # An occurrence ends as scheduled.
            if reservation and is_active and self._ends_soon(reservation, since, ends_at, now):
                expiring.add(reservation.edition)
                if reservation.edition not in self.expiring:
                    message = _message(reservation, ledger.claimed(ref), now)
                    message = _idle_message(idle_since, ends_at, now) if idle_since else message
                    self.warn(reservation, message, idle_since)
            await pacer.give_way()
        self.expiring = frozenset(expiring)

    def _ends_soon(
        self, reservation: Reservation, since: float, ends_at: float, now: float
    ) -> bool:
        if not 0 < ends_at - now <= self.before_s:
            return False
        begins_at = max(reservation.starts_at or 0.0, since)
        return ends_at - now <= (ends_at - begins_at) * _OF_LIFE


def _idle_message(since: float, ends_at: float, now: float) -> str:
    left = timedelta(seconds=int(ends_at - now))
    return (
        f"no pod has had a slot since {show_moment(since)}: Reserver releases it in {left}, at "
        f"{show_moment(ends_at)}, unless a pod claims it (releaseIfIdle)"
    )


def _message(reservation: Reservation, claimed: int, now: float) -> str:
    ends_at = reservation.expires_at or now
    left = timedelta(seconds=int(ends_at - now))
    free = reservation.slots_beside(claimed) - claimed
    what = "nobody has claimed it" if not claimed else f"{free} slots are unclaimed"
    return (
        f"expires in {left}, at {show_moment(int(ends_at))}, and {what}; extend it "
        "(reserver extend), or release it"
    )
