"""The reminder: warns of holds that will soon expire although nobody has claimed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.k8s.objects.times import show_moment
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

_PASS_EVERY_S = 30.0
"""How often all are looked at: much more often than people want to be warned before."""

_OF_LIFE = 0.5
"""What lives shorter is warned of once so much of its life is over: else it would be at once."""


class ExpiryWarnings:
    """Warns of holds that expire soon, once for each.

    Attributes:
        before_s: how long before its expiry, 0 for never.
        expiring: the reservations that expire soon, as of the last pass, by their identity.
    """

    def __init__(
        self,
        before_s: float,
        clock: Callable[[], float],
        warn: Callable[[Reservation, str], None],
    ) -> None:
        """Warn so many seconds before, 0 for never; `clock` gives unix seconds."""
        self.expiring: frozenset[str] = frozenset()
        self.before_s = before_s
        self._clock = clock
        self._warn = warn

    async def run(self, ledger: LedgerView) -> None:
        """Warn until cancelled."""
        while True:
            with quarantined("pass", "reminder"):
                await self.look(ledger, Pacer())
            often_s = self.before_s / 4 if self.before_s > 0 else _PASS_EVERY_S
            await asyncio.sleep(min(_PASS_EVERY_S, max(1.0, often_s)))

    async def look(self, ledger: LedgerView, pacer: Pacer) -> None:
        """Look at all reservations once."""
        expiring = set[str]()
        for ref in ledger.refs() if self.before_s > 0 else ():
            now = self._clock()
            reservation, since = ledger.get(ref), ledger.since(ref)
            is_active = ledger.phase(ref) is Phase.ACTIVE
            if reservation and is_active and self._expires_soon(reservation, since, now):
                expiring.add(reservation.identity)
                if reservation.identity not in self.expiring:
                    self._warn(reservation, _message(reservation, ledger.claimed(ref), now))
            await pacer.give_way()
        self.expiring = frozenset(expiring)

    def _expires_soon(self, reservation: Reservation, since: float, now: float) -> bool:
        ends_at = reservation.expires_at
        if ends_at is None or not 0 < ends_at - now <= self.before_s:
            return False
        begins_at = max(reservation.starts_at or 0.0, since)
        return ends_at - now <= (ends_at - begins_at) * _OF_LIFE


def _message(reservation: Reservation, claimed: int, now: float) -> str:
    ends_at = reservation.expires_at or now
    left = timedelta(seconds=int(ends_at - now))
    free = reservation.slots_beside(claimed) - claimed
    what = "nobody has claimed it" if not claimed else f"{free} slots are unclaimed"
    return (
        f"expires in {left}, at {show_moment(int(ends_at))}, and {what}; let it live longer "
        "(reserver extend), or release what is not wanted any more"
    )
