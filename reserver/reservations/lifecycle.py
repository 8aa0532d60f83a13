"""Settling: holds follow from the time, the quotas and the unclaimed slots."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import islice

from sortedcontainers import SortedList

from reserver.base.clock import Moment
from reserver.cluster.quantity import times
from reserver.cluster.snapshot import Snapshot
from reserver.errors import sparing
from reserver.reservations.account import Account
from reserver.reservations.binding_outcomes import BindingOutcome, slots_to_hold
from reserver.reservations.entry import by_namespace
from reserver.reservations.enums import Phase
from reserver.reservations.leaving import still_held, unwritten
from reserver.reservations.listener import Listener
from reserver.reservations.node_holds import NOTHING, Hold
from reserver.reservations.quotas import Quotas
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.turns import Turn, turns
from reserver.reservations.view import LedgerView

AT_ONCE = 500
"""Most reservations that start or end in one call, unless a decision needs all of them."""


class Lifecycle(LedgerView):
    """A ledger in which phases, claims and quotas decide the holds."""

    def __init__(
        self,
        snapshot: Snapshot,
        listener: Listener,
        quotas: Quotas | None,
        failed: Callable[[Ref, Exception], None],
    ) -> None:
        """Begin without reservations; for the arguments see `ledger.Ledger`."""
        super().__init__(snapshot, listener, quotas, failed)
        self._listener = listener
        self._failed = failed
        self._latest = 0.0
        self._turns: SortedList[Turn] = SortedList()
        self._anew: deque[Account] = deque()
        self._knows_claims = False
        self._recorded_idle: dict[str, float] = {}

    def advance(self, now: float, most: int | None = AT_ONCE) -> None:
        """Advance the time to `now` (unix seconds): reservations start and expire.

        Without due reservations the call is free, and an earlier moment changes nothing: a caller
        that keeps one over an ``await`` still decides as of now.

        Args:
            now: unix seconds, from the process's clock.
            most: most reservations that start or end in this call; None for all. A decision needs
                all, and runs `advancing` first, which yields to other work.
        """
        for _ in islice(self.advancing(now), most):
            pass

    def is_due(self, now: float) -> bool:
        """Return whether any reservation is due to start or end."""
        moment = Moment.of(now)
        is_anew = bool(self._anew) or moment.set_back > self._now.set_back
        return is_anew or self._has_turn(moment if moment.comes_after(self._now) else self._now)

    def _has_turn(self, now: float) -> bool:
        return bool(self._turns) and self._turns[0][0] <= now

    def starting(self, until: float) -> Iterator[Reservation]:
        """Yield the reservations that start until a moment (unix seconds).

        Other work may come between the steps: each reservation is checked when it is yielded.
        """
        for at, _, identity in tuple(self._turns.irange(maximum=(until, math.inf, ""))):
            reservation = found.reservation if (found := self._register.of(identity)) else None
            if reservation and reservation.starts_at == at and self.is_coming(reservation):
                yield reservation

    def advancing(self, now: float) -> Generator[None]:
        """Advance the time to `now` (unix seconds), one reservation a step.

        Other work may come between the steps, and advance the time further, which then counts here
        too. If the clock was set back, the new time is right (`base.clock`): all reservations are
        judged again.
        """
        moment = Moment.of(now)
        if moment.comes_after(self._now):
            if moment.set_back > self._now.set_back:
                self._anew.extend(self._register.accounts())
            self._now = moment
        while self._anew:
            again = self._anew.popleft()
            if self._register.of(again.identity) is again and not self._recur(again):
                again.idle_since = min(again.idle_since, math.ceil(self._now))
                self._expect_turns(again)
                self._settle(again)
                yield
        while self._has_turn(self._now):
            _, order, identity = self._turns.pop(0)
            account = self._register.of(identity)
            if account is not None and account.order == order:
                if self._has_ended(account) and self._recur(account):
                    yield
                    continue
                if not account.is_holding:  # Starts now.
                    self._stand_last(account)
                    account.is_edited |= self._begins_again(account)
                self._settle(account)
                yield

    def _has_ended(self, account: Account) -> bool:
        return self._now >= (account.reservation.expires_at or math.inf)

    def _begins_again(self, account: Account) -> bool:
        """Return whether an occurrence begins at the former one's place, which may be full."""
        again = account.reservation
        return again.recurrence is not None and bool(again.placed) and self._is_active(account)

    def _recur(self, account: Account) -> bool:  # noqa: ARG002 - overridden by the ledger
        """Switch a recurring reservation to its current occurrence; return whether it changed."""
        return False

    def was_admitted(self, ref: Ref, digest: str) -> None:
        """Restore the recorded admission of a reservation."""
        reservation = self.get(ref)
        if reservation is not None and series_digest(reservation.digest) == series_digest(digest):
            self.quotas.recall(reservation)

    def admit(self, namespace: str) -> Generator[None]:
        """Apply the quotas of a namespace in steps.

        The ledger is consistent between the steps, so that other work may have its turn.
        """
        for identity in self.quotas.steps(namespace, None):
            self._let_in(identity)
            yield

    def open(self) -> Generator[None]:
        """Open the quotas in steps: all reservations and recorded admissions are known."""
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
        """Update the holds of a reservation after a step of its quotas.

        Newly admitted, it comes behind all current holds, which were there before it.
        """
        account = self._register.of(identity)
        if account is None:
            return
        with sparing(partial(self._failed, account.reservation.ref)):
            if self._is_active(account) and not account.is_holding:
                self._stand_last(account)
            self._hold(account)

    def _stand_last(self, account: Account) -> None:
        """Put a reservation behind all that were written or started before."""
        since = self._last_turn()
        for hold in account.holds:
            hold.since = since

    def _last_turn(self) -> Written:
        """Return the turn behind all reservations that were written or started before."""
        self._latest = math.nextafter(self._latest, math.inf)
        return Written(self._latest, self._latest)

    def _expect_turns(self, account: Account) -> None:
        self._turns.update(each for each in {*turns(account, self._now)} if each not in self._turns)

    def _expect_none(self, account: Account) -> None:
        for turn in turns(account, -math.inf):
            self._turns.discard(turn)

    def _settle(self, account: Account) -> None:
        """Update a reservation's quotas and holds after a change."""
        with sparing(partial(self._failed, account.reservation.ref)):
            self._follow(account)

    def _follow(self, account: Account) -> None:
        self._charge(account)
        self._hold(account)
        self._admit_neighbors(account)

    def _charge(self, account: Account) -> None:
        """Charge the unclaimed slots to the quotas of each namespace of the reservation."""
        self._judge_use(account)
        unclaimed = self._unclaimed(account)
        for each in by_namespace(account.entries):
            self.quotas.charge(each, unclaimed, self._now)

    def _admit_neighbors(self, account: Account) -> None:
        """Admit the reservations that now fit in the quotas of its namespaces."""
        for namespace in dict.fromkeys(ref.namespace for ref in account.refs):
            self._admit(namespace)

    def _hold(self, account: Account) -> None:
        """Update the holds of a reservation."""
        for ref in account.refs:
            self._listener.on_reservation_changed(ref)
        self._judge_use(account)
        self._holdings.reorder(account.holds)
        left = account.left() if self._is_active(account) else ({}, 0)
        unsure = self._claims.in_flight(account.claimants)
        outcomes = self._outcomes(account, unsure) if unsure or account.leaving else []
        free = slots_to_hold(account.reservation, outcomes) if unsure else left
        account.holds_more = free != left
        hold_slots = partial(self._hold_slots, account, unsure)
        comes_back = self._comes_back(account)
        for hold in account.holds:
            hold_slots(hold, free[0].get(hold.reservation.node, 0), comes_back=comes_back)
        if account.leaving:
            written = unwritten(account.entries)
            for hold, slots in still_held(account.leaving, written, outcomes, free):
                hold_slots(hold, slots, comes_back=False)
            account.leaving = account.leaving if written else ()

    def _outcomes(self, account: Account, in_flight: Counter[str]) -> list[BindingOutcome]:
        """Return the outcomes of the bindings in flight in which a reservation holds."""
        if not (self._is_admitted(account) and self._now < account.idle_until):
            return []
        return [
            each
            for each in self._claims.outcomes(account.claimants, in_flight)
            if account.reservation.phase(len(each.claimed_on), self._now) is Phase.ACTIVE
        ]

    def _judge_use(self, account: Account) -> None:
        """Update the idle time of a reservation with `releaseIfIdle`."""
        if account.reservation.release_if_idle and self._knows_claims:
            self._expect_idle(account, self._idle_since(account))

    def _expect_idle(self, account: Account, since: float) -> None:
        self._turns.discard((account.idle_until, account.order, account.identity))
        account.idle_since = since
        self._expect_turns(account)

    def _hold_slots(
        self, account: Account, unsure: Counter[str], hold: Hold, slots: int, *, comes_back: bool
    ) -> None:
        """Hold slots; the others hold again once their pods go, or their bindings fail."""
        reservation, number = hold.reservation, hold.reservation.slots - slots
        number = number if comes_back else min(number, unsure[reservation.node])
        number += slots if reservation.lends_below is not None else 0
        returning = times(reservation.resources, number) if number else NOTHING
        if slots != hold.slots or returning != hold.returning:
            amounts = times(reservation.resources, slots) if slots else NOTHING
            self._holdings.hold(hold, account.claimants.keys(), amounts, returning)
            hold.slots = slots

    def _settle_claim(self, account: Account, node: str) -> None:
        """Settle a reservation after one claim of a slot on a node, and no other change.

        The cost does not depend on the number of nodes of the reservation.
        """
        hold = account.hold_on(node)
        is_one = hold is not None and hold.slots and account.is_reckoned
        is_more = account.leaving or account.holds_more
        if hold is None or not is_one or is_more or not self._is_active(account):
            self._settle(account)
            return
        with sparing(partial(self._failed, account.reservation.ref)):
            self._charge(account)
            for ref in account.refs:
                self._listener.on_reservation_changed(ref)
            slots, comes_back = account.left()[0][node], account.reservation.reusable
            unsure = self._claims.in_flight(account.claimants)
            self._hold_slots(account, unsure, hold, slots, comes_back=comes_back)
            self._admit_neighbors(account)

    def _unclaimed(self, account: Account) -> int:
        """Return the slots that the quotas count: claimed slots too if they may come back."""
        reservation = account.reservation
        if self._now >= account.ends_at and not reservation.recurs:
            return 0
        if reservation.reusable or reservation.recurrence is not None:
            return reservation.slots
        return max(0, reservation.slots - self._claims.count_written(account.claimants))
