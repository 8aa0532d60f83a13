"""The ledger: what is held where, for whom, at this instant.

Everything in it follows from the reservations as written, the claims that bound pods carry and the
time; it can be rebuilt from those. It writes what is held into the snapshot's matrix as it changes,
so a decision costs the same with ten reservations and with ten thousand.

A reservation may be written at two refs for a while, because it is moved from one store to another
(docs/adr/0009): what has the same identity has one account, and holds once (docs/adr/0025).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.account import Account
from reserver.reservations.entry import UNSEEN, Entry, inherit
from reserver.reservations.index import raising
from reserver.reservations.lifecycle import Lifecycle, kept_turns
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.node_holds import NOTHING
from reserver.reservations.placement import Parts, clipped
from reserver.reservations.quotas import Quotas
from reserver.reservations.recovery import RecoveredClaims
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Ref, Reservation, Written
from reserver.reservations.reservation_view import OVER


class Ledger(Lifecycle):
    """The ledger: what is held where, for whom, at this instant."""

    def __init__(
        self,
        snapshot: Snapshot,
        listener: Listener = NOBODY,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Keep a ledger.

        Args:
            snapshot: what is held is written into its matrix.
            listener: is notified of reservations that change, and of nodes on which less is held.
            quotas: what reservations of a namespace may hold together; None for anything.
            failed: called with each reservation that could not be settled, or whose owner rules
                could not be asked, and what was raised: it holds what it held.
        """
        super().__init__(snapshot, listener, quotas, failed)
        self.past = RecoveredClaims(self._register, self._claims, self._settle, self._know_claims)
        self._sequence = count()

    def put(self, reservation: Reservation, written: Written = ANY_TIME) -> None:
        """Take a reservation as written; what stood at its place before is gone.

        If anything raises meanwhile, what stood there stands.

        Args:
            reservation: what is written.
            written: when. A pod that it names and that was bound after that has ended it, even if
                its binding became known first. `NOT_YET` while it is being written: it holds at
                once, and is put again when the write is seen.
        """
        before = self._register.get(reservation.ref)
        if written.last < ANY_TIME.last:
            self._latest = max(self._latest, written.last)
        if before is not None and before.identity == reservation.identity:
            self._put_again(before, reservation, written)
            return
        old = before.entry(reservation.ref) if before is not None else None
        since = old.since if old is not None else reservation.created_at or self._now
        entry = Entry(reservation, written, since, reservation.placed)
        is_same = old is not None and inherit(entry, old)
        adopted = self._claims.adopted(entry)
        judged = self._judged(entry, before, adopted, is_same=is_same)
        try:
            if before is not None and old is not None:
                stays = before.written_in(reservation.ref.namespace) > 1
                self.quotas.replace(old.reservation, reservation, self._now, stays=stays)
                self.drop(reservation.ref)
            self._enter(entry, judged)
        except Exception:
            self._undo(reservation, before, old)
            raise
        self._claims.adopt(adopted, judged.identity)
        if before is not None and is_same:
            self._claims.rename(before.identity, judged.identity)

    def _undo(self, written: Reservation, before: Account | None, old: Entry | None) -> None:
        """Undo a put, however far it has come."""
        if self._register.get(written.ref) is not before:
            self._withdraw(written.ref)
        self._uncharge(written)
        if before is not None and old is not None:
            self._register.add(before, old)
            self._settle(before)

    def _judged(
        self, entry: Entry, before: Account | None, adopted: Mapping[str, str], *, is_same: bool
    ) -> Account:
        """Return the account of an entry by itself; nothing has changed yet.

        Args:
            entry: what is written.
            before: the account of what stood there.
            adopted: the claims that are of it as well (`Claims.adopted`).
            is_same: what stood there is the same, except when its expiry was computed.
        """
        reservation = entry.reservation
        after = Account(reservation, reservation.identity, next(self._sequence))
        after.stand(entry.written, kept_turns(reservation, before, is_same=is_same))
        if before is not None:
            after.is_edited = bool(reservation.placed and not before.reservation.node)
            if is_same:
                after.is_edited = before.is_edited
                after.take_over(before)
        self._claims.give_slots(after, entry, adopted)
        return after

    def _enter(self, entry: Entry, judged: Account) -> None:
        """Take what is written at a ref where nothing is, with what was judged of it."""
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
        self._follow(account)

    def _put_again(self, account: Account, again: Reservation, written: Written) -> None:
        """Take what is written as it was before, but perhaps as placed elsewhere."""
        entry = account.entry(again.ref)
        # That nothing is written of it any more does not make it unplaced.
        is_news = bool(again.placed) and again.placed != entry.recorded
        if entry.written is NOT_YET:
            entry.written = written
            self._claims.give_slots(account, entry)
        elif again.placed == entry.recorded:
            return
        entry.recorded = again.placed
        if is_news and again.placed != account.reservation.placed:
            self._move(account, clipped(again.placed, again.most_slots))
        for hold in account.holds:
            if hold.since is NOT_YET:
                hold.since = written
        self._settle(account)

    def place(self, ref: Ref, parts: Parts) -> None:
        """Place a reservation that names no node: it holds there, and nowhere else.

        Args:
            ref: its place in the store; what is written there may say otherwise for a while.
            parts: on which nodes, no slot twice.
        """
        account = self._register[ref]
        self._move(account, parts)
        self._settle(account)

    def _move(self, account: Account, parts: Parts) -> None:
        account.obstacle, account.is_edited = "", False
        for hold in account.move(parts):
            self._holdings.hold(hold, NOTHING)
        for entry in account.entries:
            self._claims.give_slots(account, entry)

    def cannot_place(self, ref: Ref, why: str) -> None:
        """Note why a reservation has no place, or why its place cannot be written."""
        account = self._register[ref]
        if account.obstacle != why:
            account.obstacle = why
            for each in account.refs:
                self._listener.on_reservation_changed(each)

    def note_unwritten(self, ref: Ref, why: str) -> None:
        """Note why the expiry or place of a reservation cannot be written; empty once it is."""
        account = self._register.get(ref)
        entry = account.entry(ref) if account is not None else None
        if entry is not None and entry.unwritten != why:
            entry.unwritten = why
            self._listener.on_reservation_changed(ref)

    def keep(self, ref: Ref) -> None:
        """Note that an edited reservation stays where it is."""
        self._register[ref].is_edited = False
        self._listener.on_reservation_changed(ref)

    def drop(self, ref: Ref) -> None:
        """Forget a reservation that is no longer written, if it is known."""
        account = self._withdraw(ref)
        if account is not None:
            if account.entries:
                self._settle(account)
            self._admit(ref.namespace)

    def _withdraw(self, ref: Ref) -> Account | None:
        """Take what is written at a ref out of its account; return that, None for nothing."""
        account = self._register.get(ref)
        if account is None:
            return None
        if len(account.entries) == 1:
            for hold in account.holds:
                hold.slots = 0
                self._holdings.hold(hold, NOTHING)
            self._expect_none(account)
        entry = self._register.remove(ref)
        self._uncharge(entry.reservation)
        if account.entries:
            account.succeed()
        return account

    def _uncharge(self, reservation: Reservation) -> None:
        """Count a reservation in its namespace no more, unless it is written there elsewhere."""
        account = self._register.of(reservation.identity)
        if account is None or not account.written_in(reservation.ref.namespace):
            self.quotas.leave(reservation)

    def claim(self, identity: str, pod: Pod, *, written: bool = True) -> None:
        """Record that a pod claimed a slot, even of a reservation that is not known (yet).

        What a pod says it claimed counts as `Claims.takes_slot` has it. One that is not written yet
        may be taken back, and ends nothing that is held elsewhere.
        """
        identity = self._claims.meaning(identity, pod)
        self._claims.add(identity, pod, written=written)
        account = self._register.of(identity)
        if account is None:
            return
        if self._claims.takes_slot(pod, account):
            if account.take(pod, pod.revision if written else UNSEEN, written=written):
                self._settle_claim(account, pod.node)
        elif account.reservation.reusable and account.release(pod.uid):
            self._settle(account)

    def bound(self, pod: Pod, *, exact: bool) -> None:
        """Note that somebody just bound a pod: that ends what names it, if it was there before.

        A mirror pod is passed over: kubelets choose its name, and its node is theirs anyway.

        Args:
            pod: as it is shown bound; what may have been written after its revision may be for
                another pod of that name, or for a move.
            exact: that is the binding's own resourceVersion, not that of a later change of the pod.
        """
        if pod.is_mirror:
            return
        for account in self._register.naming(pod.name):
            written = min(entry.written for entry in account.entries)
            is_before = written == ANY_TIME or written.last <= pod.revision
            if self._phase(account) not in OVER and is_before:
                self.claim(account.identity, pod)
        if exact:
            self._claims.bound(pod)

    def written(self, pod_uid: str) -> None:
        """Note that the API server has a pod's claims, which are now final."""
        if not self._claims.written(pod_uid):
            return
        for identity in self._claims.by(pod_uid):
            account, pod = self._register.of(identity), self._claims.of(identity)[pod_uid]
            if account is not None:
                if self._claims.takes_slot(pod, account):
                    account.take(pod, UNSEEN, written=True)
                self._settle_claim(account, pod.node)

    def unclaim(self, pod_uid: str) -> None:
        """Take back a pod's claims: its binding failed."""
        for account in self._accounts(self._claims.forget(pod_uid)):
            account.release(pod_uid)
            self._settle(account)

    def pod_over(self, pod: Pod) -> None:
        """Note that a pod has finished or is gone: its slots of what is reusable come back.

        What it took of others stays taken as long as they are written.
        """
        self._claims.over(pod)
        named, claimed = self._register.naming(pod.name), self._accounts(self._claims.by(pod.uid))
        for account in dict.fromkeys((*named, *claimed)):
            comes_back = account.reservation.reusable and account.release(pod.uid)
            if comes_back or account.reservation.release_if_idle:
                self._settle(account)

    def pod_gone(self, pod: Pod) -> None:
        """Note that a pod is gone, and no longer evidence of its claims."""
        self.pod_over(pod)
        for account in self._accounts(self._claims.forget(pod.uid)):
            self._settle(account)

    def _accounts(self, identities: Iterable[str]) -> list[Account]:
        return list(filter(None, map(self._register.of, identities)))
