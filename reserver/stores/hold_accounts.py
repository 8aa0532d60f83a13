"""The accounts of this process: counts what reservations hold, and notices low use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.reservations.accounts import (
    DAY_S,
    NOTHING,
    OTHERS,
    Accounts,
    HoldMeter,
    HoldUse,
    Uses,
    measured,
)
from reserver.reservations.outcome import Ending
from reserver.reservations.owner import home
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.view import LedgerView
from reserver.stores.object.status_codec import summary

LOOK_EVERY_S = 60.0
"""How often all reservations are looked at, in seconds."""

_MOST_NAMESPACES = 50
"""How many namespaces have sums of their own for metrics; the others are one."""

_SUMMED = ("cpu", "memory")


class HoldAccounts:
    """Counts what reservations hold from look to look, and those that end between two looks.

    Attributes:
        counted_until: until when earlier processes have counted, in unix seconds.
        least_use: the share of a hold below which its use in a day is low.
        seconds: amounts times seconds that this process has counted, by namespace and resource.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        least_use: float,
        notice: Callable[[Reservation, str], None],
    ) -> None:
        """Begin empty.

        Args:
            clock: gives unix seconds.
            least_use: see above; 0 for no notices.
            notice: is called with each reservation of low use, once a day.
        """
        self.accounts = Accounts()
        self.counted_until = clock()
        self.least_use = least_use
        self.seconds: dict[tuple[str, str], HoldUse] = {}
        self._clock = clock
        self._notice = notice
        self._meters: dict[str, HoldMeter] = {}

    def resume(self, accounts: Accounts, until: float) -> None:
        """Take what earlier processes have counted; a day without a process is counted at most."""
        for key, uses in self.accounts:
            accounts.put(key, uses)
        self.accounts = accounts
        self.counted_until = max(min(until, self._clock()), self._clock() - DAY_S)

    async def look(self, ledger: LedgerView, pacer: Pacer) -> None:
        """Count what all reservations have held since the last look."""
        seen = set[str]()
        for ref in ledger.refs():
            reservation = ledger.get(ref)
            if reservation is not None and ledger.stands_for_all(ref):
                seen.add(reservation.identity)
                with quarantined("pass", ref):
                    self._look_at(ref, reservation, ledger)
            await pacer.give_way()
        for identity in self._meters.keys() - seen:
            self._advance(self._meters.pop(identity), self._clock(), NOTHING)

    def ended(self, ending: Ending) -> None:
        """Count what a reservation that is over has held since the last look."""
        reservation = ending.reservation
        end = min(ending.at, reservation.expires_at or ending.at)
        meter = self._meters.get(reservation.identity)
        if meter is not None:
            self._advance(meter, max(meter.at, end), NOTHING)
            return
        begin = self._begin(reservation, ending.since)
        if reservation.parts and 0 < end - begin < 2 * LOOK_EVERY_S:  # Else a look has seen it.
            amounts = reservation.resources.items()
            uses = {name: HoldUse(slot * reservation.slots) for name, slot in amounts}
            self._advance(_meter(reservation, uses, begin, None), end, NOTHING)

    def low_use(self) -> Counter[str]:
        """Return how many reservations had low use on their last day, by namespace."""
        return Counter(meter.namespace for meter in self._meters.values() if meter.is_low)

    def _look_at(self, ref: Ref, reservation: Reservation, ledger: LedgerView) -> None:
        now, uses = self._clock(), measured(reservation, ledger)
        meter = self._meters.get(reservation.identity)
        if meter is None:
            if not uses:
                return
            since = ledger.since(ref)
            begin = min(now, self._begin(reservation, since))
            begun = max(since, reservation.starts_at or 0.0)
            unused_since = None if ledger.claimed(ref) else min(begin, begun)
            meter = _meter(reservation, uses, begin, unused_since)
            self._meters[reservation.identity] = meter
        if reservation.expires_at is not None:
            now = min(now, max(meter.at, reservation.expires_at))
        self._advance(meter, now, uses)
        share = meter.finish_day(self.least_use)
        if share is not None:
            self._notice(reservation, _message(share, self.least_use))

    def _begin(self, reservation: Reservation, since: float) -> float:
        return max(since, reservation.starts_at or 0.0, self.counted_until)

    def _advance(self, meter: HoldMeter, now: float, uses: Uses) -> None:
        at = meter.at
        seconds, held = meter.advance(now, uses)
        if not (seconds and held):
            return
        self.accounts.add(meter.namespace, meter.owner, at, now, held)
        for resource in _SUMMED:
            if resource in held:
                key = self._key(meter.namespace, resource)
                self.seconds[key] = self.seconds.get(key, HoldUse()).plus(held[resource], seconds)

    def _key(self, namespace: str, resource: str) -> tuple[str, str]:
        key = namespace, resource
        has_room = len(self.seconds) < _MOST_NAMESPACES * len(_SUMMED)
        return key if key in self.seconds or has_room else (OTHERS, resource)


def _meter(
    reservation: Reservation, uses: Uses, begin: float, unused_since: float | None
) -> HoldMeter:
    namespace = home(reservation.owners, reservation.rules)
    owner = summary(reservation, 0, home=namespace).owners
    return HoldMeter.begun(namespace, owner, uses, begin, unused_since)


def _message(share: float, least: float) -> str:
    return (
        f"pods requested {share:.0%} of it in the last 24 hours, less than {least:.0%}; hold less "
        "(reserver update), or release what is not wanted any more"
    )
