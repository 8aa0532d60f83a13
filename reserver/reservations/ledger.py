"""The ledger: all holds and their owners at this instant.

The ledger follows from the written reservations, the claims on bound pods and the time, and can be
rebuilt from them. It writes each change of a hold into the snapshot's matrix, so a decision costs
the same with ten reservations and with ten thousand.

A reservation may be written at two refs for a while, as it is moved from one store to another
(docs/adr/0009): entries with the same identity share one account, and hold once (docs/adr/0025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from reserver.cluster.snapshot import Snapshot
from reserver.errors import sparing
from reserver.reservations.account import Account
from reserver.reservations.claiming import Claiming
from reserver.reservations.entry import Entry, inherit
from reserver.reservations.enums import Phase
from reserver.reservations.index import raising
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.placement import Parts, clipped
from reserver.reservations.quotas import Quotas
from reserver.reservations.recovery import RecoveredClaims
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Ref, Reservation, Written
from reserver.reservations.turns import kept_turns


class Ledger(Claiming):
    """The ledger: all holds and their owners at this instant."""

    def __init__(
        self,
        snapshot: Snapshot,
        listener: Listener = NOBODY,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Begin with an empty ledger.

        Args:
            snapshot: its matrix receives the held amounts.
            listener: notified of changed reservations, and of nodes on which less is held.
            quotas: the limits of namespaces; None for no limits.
            failed: called with a reservation and what its settling or rules raised; its holds stay.
        """
        super().__init__(snapshot, listener, quotas, failed)
        snapshot.lending.own_slots = self._own_slots
        self.past = RecoveredClaims(self._register, self._claims, self._settle, self._know_claims)
        self._sequence = count()

    def put(self, reservation: Reservation, written: Written = ANY_TIME) -> None:
        """Store a reservation in place of the former entry of its ref, which stays if this raises.

        Args:
            written: the time of the write. A named pod that was bound after it has ended the
                reservation, even if the binding was observed first. `NOT_YET` during a write: the
                reservation holds at once, and is put again when a watch shows the write.
        """
        before = self._register.get(reservation.ref)
        if before is not None and self._has_ended(before):
            self._recur(before)
        self._take(reservation.at(self._now), written)

    def _take(self, reservation: Reservation, written: Written) -> None:
        """Store a reservation with its current occurrence."""
        before = self._register.get(reservation.ref)
        if written.last < ANY_TIME.last:
            self._latest = max(self._latest, written.last)
        old = before.entry(reservation.ref) if before is not None else None
        if before is not None and old and old.reservation.edition == reservation.edition:
            self._put_again(before, reservation, written)
            return
        since = old.since if old is not None else reservation.created_at or self._now
        read_at = written.last if reservation.placed and written is not NOT_YET else 0.0
        entry = Entry(reservation, written, since, reservation.placed, read_at)
        is_same = old is not None and inherit(entry, old)
        adopted = self._claims.adopted(entry)
        judged = self._judged(entry, before, adopted, is_same=is_same)
        try:
            with self._snapshot.borrowed_once():
                if before is not None and old is not None:
                    stays = before.written_in(reservation.ref.namespace) > 1
                    self.quotas.replace(old.reservation, reservation, self._now, stays=stays)
                    self.drop(reservation.ref, successor=reservation.identity)
                self._enter(entry, judged)
            if is_same and reservation.lasting:
                self._let_go(self._register[reservation.ref])
        except Exception:
            self._undo(reservation, before, old)
            raise
        self._claims.adopt(adopted, judged.identity)
        if before is not None and is_same:
            self._claims.rename(before.identity, judged.identity)
        with sparing(partial(self._failed, reservation.ref)):
            account = self._register[reservation.ref]
            self._holdings.recount_borrowers(account.holds, account.claimants.keys())

    def _let_go(self, account: Account) -> None:
        """Drop the claims that name a former expiry of a reservation."""
        if sum(map(account.release, self._claims.let_go(account))):
            self._settle(account)

    def _undo(self, written: Reservation, before: Account | None, old: Entry | None) -> None:
        """Undo a `put` that failed at any point."""
        if self._register.get(written.ref) is not before:
            self._withdraw(written.ref)
        self._uncharge(written)
        if before is not None and old is not None:
            self._register.add(before, old)
            self._settle(before)

    def _judged(
        self, entry: Entry, before: Account | None, adopted: Mapping[str, str], *, is_same: bool
    ) -> Account:
        """Return a new account for an entry alone; the ledger is unchanged.

        Args:
            before: the former account of the ref.
            adopted: further claims of the entry (`Claims.adopted`).
            is_same: both are the same to claims. An expired reservation begins anew.
        """
        reservation = entry.reservation
        after = Account(reservation, reservation.identity, next(self._sequence))
        is_over = before is not None and self._phase_by_time(before) is Phase.EXPIRED
        goes_on = is_same and not is_over
        since = entry.written if before is None or goes_on else self._turn_of(entry, before)
        after.stand(since, kept_turns(reservation, before, is_same=goes_on))
        if before is not None:
            after.is_edited = bool(reservation.placed and not before.reservation.node)
            if is_same:
                after.take_over(before)
            if goes_on:
                after.is_edited = before.is_edited
            else:
                after.idle_since = 0.0
        self._claims.give_slots(after, entry, adopted)
        return after

    def _turn_of(self, entry: Entry, before: Account) -> Written:
        """Return the turn of a replacement; the next occurrence comes behind all holds."""
        is_next = entry.reservation.written_as == before.reservation.written_as
        return self._last_turn() if is_next else entry.written

    def _recur(self, account: Account) -> bool:
        """Switch a recurring reservation to its current occurrence; return whether it changed."""
        after = account.reservation.at(self._now)
        if after.identity == account.identity:
            return False
        if self._has_ended(account):
            self._listener.on_occurrence_over(account.reservation.ref)
        if len(account.entries) > 1:  # Else both occurrences count until the last entry moves.
            for entry in account.entries:
                reservation = entry.reservation
                self.quotas.replace(reservation, reservation.about(after), self._now, stays=False)
        for entry in account.entries:
            with sparing(partial(self._failed, entry.reservation.ref)):
                self._take(entry.reservation.about(after), entry.written)
                again = self._register[entry.reservation.ref]
                again.entry(entry.reservation.ref).recorded = entry.recorded
                again.is_edited = self._begins_again(again)
        return True

    def _enter(self, entry: Entry, judged: Account) -> None:
        """Add an entry at a ref without one, with its judged account."""
        account = self._register.of(judged.identity)
        if account is None:
            account = judged
            self._register.add(account, entry)
            self._expect_turns(account)
        else:
            account.take_over(judged)
            if judged.reservation.placed and not account.reservation.placed:
                self._move(account, judged.reservation.placed)
                account.is_edited = judged.is_edited
            entry.reservation = replace(entry.reservation, placed=account.reservation.placed)
            self._register.add(account, entry)
            self._succeed(account)
        self._follow(account)

    def _succeed(self, account: Account) -> None:
        """Let the first of several entries represent all, until the last of them expires."""
        self._expect_none(account)
        account.succeed(self.quotas.admits)
        self._expect_turns(account)

    def _hold(self, account: Account) -> None:
        """Update the holds of an account; the admission of its entries may have changed."""
        if len(account.entries) > 1 and self._phase_by_time(account) is not Phase.EXPIRED:
            self._succeed(account)
        super()._hold(account)

    def _put_again(self, account: Account, again: Reservation, written: Written) -> None:
        """Store an unchanged spec, perhaps with another place."""
        entry = account.entry(again.ref)
        if again.recurrence != entry.reservation.recurrence:
            self._reschedule(account, entry, again.recurrence)
        # A place that is no longer written still counts.
        is_news = bool(again.placed) and again.placed != entry.recorded
        if entry.written is NOT_YET:
            entry.written = written
            self._claims.give_slots(account, entry)
        elif again.placed == entry.recorded:
            return
        entry.recorded = again.placed
        if is_news and again.placed != account.reservation.placed:
            entry.read_at = written.last
            self._move(account, clipped(again.placed, again.most_slots))
        for hold in account.holds:
            if hold.since is NOT_YET:
                hold.since = written
        self._settle(account)

    def _reschedule(self, account: Account, entry: Entry, after: Recurrence | None) -> None:
        """Store a new schedule for later occurrences, or a suspension."""
        about = entry.reservation.occurrence
        shown = after.shown(about) if after is not None and about is not None else ()
        for each in (entry, account):
            each.reservation = replace(each.reservation, recurrence=after, next_occurrences=shown)
        self._settle(account)

    def place(self, ref: Ref, parts: Parts) -> None:
        """Place a reservation that names no node; until that is written, it holds at both places.

        Args:
            ref: its ref; the entry there may have another place for a while.
            parts: the nodes and their slots.
        """
        account = self._register[ref]
        self._move(account, parts)
        self._settle(account)

    def _move(self, account: Account, parts: Parts) -> None:
        account.obstacle, account.is_edited = "", False
        for hold in account.move(parts):
            self._holdings.hold(hold, account.claimants.keys())
        for entry in account.entries:
            self._claims.give_slots(account, entry)

    def cannot_place(self, ref: Ref, why: str) -> None:
        """Record why a reservation has no place, or why its place cannot be written."""
        account = self._register[ref]
        if account.obstacle != why:
            account.obstacle = why
            for each in account.refs:
                self._listener.on_reservation_changed(each)

    def note_unwritten(self, ref: Ref, why: str) -> None:
        """Record why a reservation's expiry or place cannot be written; empty once written."""
        account = self._register.get(ref)
        entry = account.entry(ref) if account is not None else None
        if entry is not None and entry.unwritten != why:
            entry.unwritten = why
            self._listener.on_reservation_changed(ref)

    def keep(self, ref: Ref) -> None:
        """Record that an edited reservation keeps its place."""
        self._register[ref].is_edited = False
        self._listener.on_reservation_changed(ref)

    def drop(self, ref: Ref, successor: str = "") -> None:
        """Remove a reservation that is no longer written.

        Args:
            successor: the identity of its replacement, which keeps the quotas' admission.
        """
        account = self._withdraw(ref, successor)
        if account is not None:
            if account.entries:
                self._settle(account)
            self._admit(ref.namespace)

    def _withdraw(self, ref: Ref, successor: str = "") -> Account | None:
        """Remove the entry of a ref from its account; return the account, None without one."""
        account = self._register.get(ref)
        if account is None:
            return None
        if len(account.entries) == 1:
            for hold in (*account.holds, *account.leaving):
                hold.slots = 0
                self._holdings.hold(hold, account.claimants.keys())
            self._expect_none(account)
        entry = self._register.remove(ref)
        if entry.reservation.identity != successor:
            self._uncharge(entry.reservation)
        if account.entries:
            self._succeed(account)
        return account

    def _uncharge(self, reservation: Reservation) -> None:
        """Release a reservation's quota in its namespace, unless another entry there uses it."""
        account = self._register.of(reservation.identity)
        if account is None or not account.written_in(reservation.ref.namespace):
            self.quotas.leave(reservation)
