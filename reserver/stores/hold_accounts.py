"""Counts the amounts that reservations hold over time, and keeps them in a ConfigMap."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

import structlog

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ConfigMapObject, decode
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
from reserver.stores.codec import account_codec
from reserver.stores.codec.prices import Prices
from reserver.stores.object.status_codec import summary

log = structlog.get_logger(__name__)

NAME = "reserver-accounts"
LABEL = "reserver.io/accounts"
"""The label of the ConfigMap of the accounts."""

_LOOKS = 5
"""Passes between two writes: a restart loses the details since the last write."""

LOOK_EVERY_S = 60.0
"""Seconds between two passes over all reservations."""

_MOST_NAMESPACES = 50
"""Most namespaces with metrics of their own; further namespaces share one."""

_SUMMED = ("cpu", "memory")


class HoldAccounts:
    """Counts the amounts that reservations hold, even if they end between two passes.

    Attributes:
        counted_until: the end of the counts of earlier processes, in unix seconds.
        least_use: the share of a hold below which its daily use is low.
        seconds: amounts times seconds counted by this process, by namespace and resource.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        least_use: float,
        notice: Callable[[Reservation, str], None],
    ) -> None:
        """Create empty accounts.

        Args:
            clock: returns unix seconds.
            least_use: the share as above; 0 for no notices.
            notice: called with each reservation of low use and a message, once a day.
        """
        self.accounts = Accounts()
        self.counted_until = clock()
        self.least_use = least_use
        self.seconds: dict[tuple[str, str], HoldUse] = {}
        self._clock = clock
        self._notice = notice
        self._meters: dict[str, HoldMeter] = {}

    def resume(self, accounts: Accounts, until: float) -> None:
        """Add the counts of earlier processes; a gap after `until` counts up to one day."""
        for key, uses in self.accounts:
            accounts.put(key, uses)
        self.accounts = accounts
        self.counted_until = max(min(until, self._clock()), self._clock() - DAY_S)

    async def look(self, ledger: LedgerView, pacer: Pacer) -> None:
        """Count the holds of all reservations since the last pass."""
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
        """Count the hold of an ended reservation since the last pass."""
        reservation = ending.reservation
        end = min(ending.at, reservation.expires_at or ending.at)
        meter = self._meters.get(reservation.identity)
        if meter is not None:
            self._advance(meter, max(meter.at, end), NOTHING)
            return
        begin = self._begin(reservation, ending.since)
        if reservation.parts and 0 < end - begin < 2 * LOOK_EVERY_S:  # Else a pass has counted it.
            amounts = reservation.resources.items()
            uses = {name: HoldUse(slot * reservation.slots) for name, slot in amounts}
            self._advance(_meter(reservation, uses, begin, None), end, NOTHING)

    def low_use(self) -> Counter[str]:
        """Return the number of reservations with low use on their last day, by namespace."""
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
        seconds, held = meter.advance(now, uses)
        if not (seconds and held):
            return
        self.accounts.add(meter.namespace, meter.owner, now - seconds, now, held)
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
        "(reserver update), or release it"
    )


class AccountWriter:
    """Writes the ConfigMap of the accounts.

    Attributes:
        held: the accounts to write.
        prices: the hourly prices of resources.
        writes: the number of writes made.
    """

    def __init__(
        self, client: ApiClient, namespace: str, held: HoldAccounts, clock: Callable[[], float]
    ) -> None:
        """Write into a ConfigMap of a namespace; `clock` returns unix seconds."""
        self.held = held
        self.prices = Prices()
        self.writes = 0
        self._client = client
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._path = f"{self._collection}/{NAME}"
        self._clock = clock
        self._written: dict[str, int] = {}
        self._problem = ""

    async def run(self, ledger: LedgerView) -> None:
        """Read the former accounts; then count and write until cancelled."""
        await self.read()
        for looks in count(1):
            with quarantined("pass", "accounts"):
                await self.held.look(ledger, Pacer())
            if looks % _LOOKS == 0:  # Right after a pass, so that the accounts are up to date.
                with quarantined("pass", "accounts"):
                    await self.write()
            await asyncio.sleep(LOOK_EVERY_S)

    async def read(self) -> None:
        """Read the former accounts, with retries: writing without them would lose them."""
        backoff = Backoff(1.0, LOOK_EVERY_S)
        data: Mapping[str, str] = {}
        while True:
            try:
                raw = await self._client.get(self._path)
            except ApiError as exc:
                if exc.is_absent:
                    break
                self._failed("accounts cannot be read", exc)
                await backoff.sleep()
                continue
            with suppress(InvalidInput):  # Not written by Reserver, and replaced.
                data = decode(ConfigMapObject, raw).data or {}
            break
        accounts, until = await Pacer().run(account_codec.read(data))
        self._written = dict.fromkeys(data, 0)
        self.held.resume(accounts, until or self._clock())

    async def write(self) -> None:
        """Write the changed weeks."""
        until = self._clock()
        data = await Pacer().run(account_codec.write(self.held.accounts, until))
        changes: dict[str, str | None] = {
            name: text for name, text in data.items() if self._written.get(name) != hash(text)
        }
        changes |= dict.fromkeys(self._written.keys() - data.keys())
        try:
            await self._send(changes, data)
        except ApiError as exc:
            self._failed("accounts cannot be written", exc)
            return
        self.writes += 1
        self._problem = ""
        self._written = {name: hash(text) for name, text in data.items()}

    async def _send(self, changes: Mapping[str, str | None], whole: Mapping[str, str]) -> None:
        try:
            await self._client.patch(self._path, {"data": changes})
        except ApiError as exc:
            if not exc.is_absent:
                raise
            metadata = {"name": NAME, "labels": {LABEL: "true"}}
            await self._client.create(self._collection, {"metadata": metadata, "data": whole})

    def _failed(self, event: str, error: ApiError) -> None:
        if (problem := str(error)) != self._problem:
            self._problem = problem
            log.warning(event, configmap=NAME, why=problem)
