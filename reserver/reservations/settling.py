"""Settling: what is held follows from time, quotas and unclaimed slots."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import islice

from reserver.cluster.snapshot import Snapshot
from reserver.errors import sparing
from reserver.reservations.account import Account
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Written
from reserver.reservations.view import LedgerView

_SPARE_TURNS = 1_000
_TURNS_PER_ENTRY = 4
"""How many future moments are kept at most: twice as many as there can be."""

AT_ONCE = 500
"""How many reservations start or end in one go, unless a decision needs all of them."""

_ANEW = -math.inf
"""The moment of what is judged again, because time has gone back."""

_Turn = tuple[float, int, str]
"""A moment in unix seconds, the order of accounts, and whose it is."""


class Settling(LedgerView):
    """A ledger in which reservations hold what their phase, claims and quotas leave of them."""

    def __init__(
        self,
        snapshot: Snapshot,
        freed: Callable[[str], None],
        settled: Callable[[Ref], None],
        quotas: Quotas | None,
        failed: Callable[[Ref, Exception], None],
    ) -> None:
        """Begin with nothing held; for the arguments see `ledger.Ledger`."""
        super().__init__(snapshot, freed, quotas, failed)
        self._settled = settled
        self._failed = failed
        self._latest = 0.0
        self._turns: list[_Turn] = []

    def advance(self, now: float, most: int | None = AT_ONCE) -> None:
        """Let time pass until `now` (unix seconds): what starts then holds, what expires does not.

        It costs nothing if nothing is due.

        Args:
            now: unix seconds.
            most: how many reservations start or end, the others on the next occasion; None for all.
                Whoever decides lets all of them, and runs `advancing` before, which gives way.
        """
        for _ in islice(self.advancing(now), most):
            pass

    def is_due(self, now: float) -> bool:
        """Return whether `advance` has something to do."""
        return now < self._now or (bool(self._turns) and self._turns[0][0] <= now)

    def advancing(self, now: float) -> Generator[None]:
        """Let time pass until `now` (unix seconds), one reservation after the other.

        Other work may come between. If time has gone back, the clock was wrong before and is right
        now (`reserver.clock`): all is judged again.
        """
        if now < self._now:
            self._turns = [
                (at, account.order, account.identity)
                for account in self._register.accounts()
                for at in (_ANEW, *_moments(account, now))
            ]
            heapq.heapify(self._turns)
        self._now = now
        while self._turns and self._turns[0][0] <= now:
            turn = heapq.heappop(self._turns)
            account = self._whose(turn)
            if account is not None:
                if turn[0] != _ANEW and not account.is_holding:  # Starts now.
                    self._stand_last(account)
                self._settle(account)
                yield

    def was_admitted(self, ref: Ref, digest: str) -> None:
        """Note that a reservation is recorded as admitted before."""
        reservation = self.get(ref)
        if reservation is not None and reservation.digest == digest:
            self.quotas.recall(reservation)

    def admit(self, namespace: str) -> Generator[None]:
        """Apply the quotas of a namespace, step by step.

        Between the steps all is consistent, and other work may have its turn.
        """
        for identity in self.quotas.steps(namespace, None):
            self._let_in(identity)
            yield

    def open(self) -> Generator[None]:
        """Open the quotas, step by step: all reservations are known, and which were admitted."""
        for namespace in self.quotas.open():
            for identity in self.quotas.steps(namespace, None):
                account = self._register.of(identity)
                if account is not None:
                    self._hold(account)
                yield

    def _admit(self, namespace: str) -> None:
        for identity in self.quotas.steps(namespace):
            self._let_in(identity)

    def _let_in(self, identity: str) -> None:
        """Let a reservation hold that its quotas now admit.

        It stands behind all that hold by now: they were there while it was not.
        """
        account = self._register.of(identity)
        if account is None:
            return
        with sparing(partial(self._failed, account.reservation.ref)):
            if self._is_active(account) and not account.is_holding:
                self._stand_last(account)
            self._hold(account)

    def _stand_last(self, account: Account) -> None:
        """Put a reservation behind all that was written or started before."""
        self._latest = math.nextafter(self._latest, math.inf)
        for hold in account.holds.values():
            hold.since = Written(self._latest, self._latest)

    def _expect_turns(self, account: Account) -> None:
        for at in _moments(account, self._now):
            heapq.heappush(self._turns, (at, account.order, account.identity))
        # Those of what was edited or removed stay until their moment, or there are too many.
        if len(self._turns) > _SPARE_TURNS + _TURNS_PER_ENTRY * len(self._register):
            self._turns = list(filter(self._whose, self._turns))
            heapq.heapify(self._turns)

    def _whose(self, turn: _Turn) -> Account | None:
        """Return the account of a moment; None if it was edited or removed since."""
        account = self._register.of(turn[2])
        return account if account is not None and account.order == turn[1] else None

    def _settle(self, account: Account) -> None:
        """Make a reservation hold what its phase, its claims and the quotas leave of it."""
        with sparing(partial(self._failed, account.reservation.ref)):
            self._follow(account)

    def _follow(self, account: Account) -> None:
        unclaimed = self._unclaimed(account)
        for entry in account.entries.values():
            self.quotas.charge(entry.reservation, unclaimed, self._now)
        self._hold(account)
        for namespace in {ref.namespace for ref in account.entries}:
            self._admit(namespace)

    def _hold(self, account: Account) -> None:
        """Make a reservation hold what it may."""
        for ref in account.entries:
            self._settled(ref)
        left, _ = account.left() if self._is_active(account) else ({}, 0)
        for node, hold in account.holds.items():
            slots = left.get(node, 0)
            if slots != hold.slots:
                resources = account.reservation.resources if slots else {}
                self._holdings.hold(hold, {name: n * slots for name, n in resources.items()})
                hold.slots = slots

    def _unclaimed(self, account: Account) -> int:
        """Return how many slots the quotas count: a slot that may come back is not free yet."""
        reservation = account.reservation
        if reservation.expires_at is not None and self._now >= reservation.expires_at:
            return 0
        if reservation.reusable:
            return reservation.slots
        return max(0, reservation.slots - self._claims.count_written(account.claimants))


def _moments(account: Account, now: float) -> Iterator[float]:
    """Yield the future moments at which a reservation starts and ends."""
    for at in (account.reservation.starts_at, account.reservation.expires_at):
        if at is not None and at > now:
            yield at
