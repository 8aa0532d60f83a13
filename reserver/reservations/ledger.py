"""The ledger: what is held where, for whom, at this instant.

Everything in it follows from the reservations as written, the claims that bound pods carry and the
time; it can be rebuilt from those. It writes what is held into the snapshot's matrix as it changes,
so that a decision costs the same with ten reservations or ten thousand.

A reservation may stand in two places for a while, because it is moved from one store to another
(docs/adr/0009): what has the same identity is one reservation, and holds once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.errors import sparing
from reserver.reservations.entry import UNSEEN, Entry, inherited, kept_turns, turns
from reserver.reservations.past import Past
from reserver.reservations.placement import Parts, clipped
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import (
    ANY_TIME,
    NOT_YET,
    Ref,
    Reservation,
    Written,
)
from reserver.reservations.view import OVER, LedgerView

_SPARE_TURNS = 1_000
_TURNS_PER_ENTRY = 4
"""So many moments to come are kept at most, twice as many as there can be."""

_Turn = tuple[float, int, Ref, str]
"""A moment in unix seconds, the order of entries, and whose it is: place and digest."""


def raising(_: Ref, exc: Exception) -> None:
    """Let a fault go on: nobody else is to be told of it."""
    raise exc


class Ledger(LedgerView):
    """What is held where, for whom, at this instant."""

    def __init__(
        self,
        snapshot: Snapshot,
        freed: Callable[[str], None] = lambda _: None,
        settled: Callable[[Ref], None] = lambda _: None,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Keep a ledger.

        Args:
            snapshot: what is held is written into its matrix.
            freed: is told of each node on which less is held than before.
            settled: is told of each reservation whose phase may have changed.
            quotas: what reservations of a namespace may hold together; None for anything.
            failed: is told of each reservation that could not be settled, and what was raised: it
                holds what it held.
        """
        super().__init__(snapshot, freed, quotas)
        self._settled = settled
        self._failed = failed
        self.past = Past(self._register, self._claims, self._settle_all)
        self._latest = 0.0
        self._turns: list[_Turn] = []
        self._sequence = count()

    def put(self, reservation: Reservation, written: Written = ANY_TIME) -> None:
        """Take a reservation as written; what stood at its place before is gone.

        Args:
            reservation: what is written.
            written: when. A pod that it names and that was bound after that has ended it, even if
                its binding became known first. `NOT_YET` while it is being written: it holds at
                once, and is put again when the write is seen.
        """
        before = self._register.get(reservation.ref)
        if written.last < ANY_TIME.last:
            self._latest = max(self._latest, written.last)
        if before is not None and before.reservation.identity == reservation.identity:
            self._put_again(before, reservation, written)
            return
        is_same = before is not None and reservation.continues(before.reservation)
        if before is not None and is_same:  # Another Reserver has worked out its ttl.
            reservation = replace(reservation, drift=before.reservation.drift)
            written = written if before.written is NOT_YET else before.written
            self._claims.rename(before.reservation.identity, reservation.identity)
        entry = Entry(reservation, written, next(self._sequence), recorded=reservation.placed)
        kept: Mapping[str, Written] = {}
        if before is not None:
            inherited(entry, before)
            kept = turns(before) if is_same else kept_turns(entry, before)
            if is_same:
                entry.claimants, entry.landed = before.claimants, before.landed
                entry.is_edited = before.is_edited
            self.quotas.replace(before.reservation, reservation, self._now)
            self.drop(reservation.ref)
        self._claims.adopt(entry)
        self._claims.give_slots(entry)
        first = self._register.first(reservation.identity)
        if first is not None:
            self._join(entry, first, written)
        else:
            entry.stand(written, kept)
        self._register.add(entry)
        self._expect_turns(entry)
        self._settle_all(reservation.identity)

    def _put_again(self, entry: Entry, again: Reservation, written: Written) -> None:
        """Take what is written as it was before, but perhaps as placed elsewhere."""
        if entry.written is NOT_YET:
            entry.written = written
            self._claims.give_slots(entry)
        elif again.placed == entry.recorded:
            return
        # That nothing is written of it any more does not make it homeless.
        is_news = bool(again.placed) and again.placed != entry.recorded
        entry.recorded = again.placed
        if is_news and again.placed != entry.reservation.placed:
            self._move(again.identity, clipped(again.placed, again.slots))
        for same in self._register.same(again.identity):
            for hold in same.holds.values():
                if hold.since is NOT_YET:
                    hold.since = written
        self._settle_all(again.identity)

    def _join(self, entry: Entry, first: Entry, written: Written) -> None:
        """Let an entry stand beside one of the same identity: both are one reservation."""
        first.claimants |= entry.claimants
        first.landed |= entry.landed
        entry.claimants, entry.landed = first.claimants, first.landed
        if entry.reservation.placed and not first.reservation.placed:
            self._move(first.reservation.identity, entry.reservation.placed)
        entry.reservation = replace(entry.reservation, placed=first.reservation.placed)
        entry.stand(written, turns(first))

    def place(self, ref: Ref, parts: Parts) -> None:
        """Put a reservation that names no node somewhere: it holds there, and nowhere else.

        Args:
            ref: its place in the store; what is written there may say otherwise for a while.
            parts: on which nodes, no slot twice.
        """
        entry = self._register[ref]
        self._move(entry.reservation.identity, parts)
        self._settle_all(entry.reservation.identity)

    def _move(self, identity: str, parts: Parts) -> None:
        for entry in self._register.same(identity):
            entry.obstacle, entry.is_edited = "", False
            for hold in entry.move(parts):
                self._holdings.hold(hold, {})
            self._claims.give_slots(entry)

    def cannot_place(self, ref: Ref, why: str) -> None:
        """Take note of why a reservation has no place, or why its place cannot be written down."""
        for entry in self._register.same(self._register[ref].reservation.identity):
            if entry.obstacle != why:
                entry.obstacle = why
                self._settled(entry.reservation.ref)

    def note_unwritten(self, ref: Ref, why: str) -> None:
        """Take note of why what became of a reservation cannot be written; empty: it was."""
        entry = self._register.get(ref)
        if entry is not None and entry.unwritten != why:
            entry.unwritten = why
            self._settled(ref)

    def keep(self, ref: Ref) -> None:
        """Take note that an edited reservation stays where it is."""
        self._register[ref].is_edited = False
        self._settled(ref)

    def drop(self, ref: Ref) -> None:
        """Forget a reservation that is no longer written; one that is not known is passed over."""
        entry = self._register.get(ref)
        if entry is None:
            return
        was_first = self._register.is_first(entry)
        self._register.remove(entry)
        for hold in entry.holds.values():
            self._holdings.hold(hold, {})
        self.quotas.leave(entry.reservation)
        heir = self._register.first(entry.reservation.identity)
        if heir is not None:
            if was_first:  # It takes its place in the row.
                heir.stand(entry.written, turns(entry))
            self._settle(heir)
        self._admit(ref.namespace)

    def claim(self, identity: str, pod: Pod, *, written: bool = True) -> None:
        """Record that a pod took a slot, also of a reservation that is not known (yet).

        What a pod says it claimed counts as `Claims.takes_slot` has it. One that is not written yet
        may be taken back, and ends nothing that is held elsewhere.
        """
        identity = self._claims.meaning(identity, pod)
        self._claims.add(identity, pod, written=written)
        is_news = False
        for entry in self._register.same(identity):
            if self._claims.takes_slot(pod, entry.reservation):
                is_news |= entry.take(pod, pod.revision if written else UNSEEN, written=written)
            elif entry.reservation.reusable:
                is_news |= entry.release(pod.uid)
        if is_news:
            self._settle_all(identity)

    def bound(self, pod: Pod, *, exact: bool) -> None:
        """Take note that a pod was bound just now, by whomever: that ends all that named it.

        A mirror pod is passed over: kubelets choose its name, and its node is theirs anyway.

        Args:
            pod: as it is shown bound; what was certainly written after its revision is for another
                pod of that name, or for a move.
            exact: that is the binding's own resourceVersion, not that of a later change of the pod.
        """
        if pod.is_mirror:
            return
        for entry in self._register.naming(pod.name):
            if self._phase(entry) not in OVER and entry.written.first <= pod.revision:
                self.claim(entry.reservation.identity, pod)
        if exact:
            self._claims.bound(pod)

    def written(self, pod_uid: str) -> None:
        """Take note that the API server has what a pod claimed: nothing takes it back any more."""
        if self._claims.written(pod_uid):
            for identity in self._claims.by(pod_uid):
                pod = self._claims.of(identity)[pod_uid]
                for entry in self._register.same(identity):
                    if self._claims.takes_slot(pod, entry.reservation):
                        entry.take(pod, UNSEEN, written=True)
                self._settle_all(identity)

    def unclaim(self, pod_uid: str) -> None:
        """Take back what a pod claimed: its binding failed."""
        for identity in self._claims.forget(pod_uid):
            for entry in self._register.same(identity):
                entry.release(pod_uid)
            self._settle_all(identity)

    def pod_gone(self, pod_uid: str) -> None:
        """Take note that a pod is no evidence of its claims any more.

        What it took stays taken as long as the reservation is written, unless it is reusable.
        """
        for identity in self._claims.forget(pod_uid):
            for entry in self._register.same(identity):
                if entry.reservation.reusable:
                    entry.release(pod_uid)
            self._settle_all(identity)

    def advance(self, now: float) -> None:
        """Let time pass until `now` (unix seconds): what starts then holds, what expires does not.

        Every decision calls this first; it costs nothing while nothing is due. If time has gone
        back, the clock was wrong before and is right now (`reserver.clock`): all is judged anew.
        """
        if now < self._now:
            self._now = now
            self._expect_all_turns()
            for entry in self._register:
                self._settle(entry)
        self._now = now
        while self._turns and self._turns[0][0] <= now:
            _, _, ref, digest = heapq.heappop(self._turns)
            entry_due = self._register.get(ref)
            if entry_due is not None and entry_due.reservation.digest == digest:
                with sparing(partial(self._failed, ref)):
                    if not entry_due.is_holding:  # Starts now.
                        self._stand_last(entry_due)
                self._settle(entry_due)

    def was_admitted(self, ref: Ref, digest: str) -> None:
        """Take note that it is written of a reservation that its quotas let it hold, before."""
        entry = self._register.get(ref)
        if entry is not None and entry.reservation.digest == digest:
            self.quotas.recall(entry.reservation)

    def admit(self, namespace: str) -> Generator[None]:
        """Do all that is left to do about the quotas of a namespace, step by step.

        Between the steps all is consistent, and other work may have its turn.
        """
        for identity in self.quotas.steps(namespace, None):
            self._let_in(identity)
            yield

    def open(self) -> Generator[None]:
        """Let reservations hold: all of them are known, and who was there before; step by step."""
        for namespace in self.quotas.open():
            for identity in self.quotas.steps(namespace, None):
                for entry in tuple(self._register.same(identity)):
                    self._hold(entry)
                yield

    def _admit(self, namespace: str) -> None:
        for identity in self.quotas.steps(namespace):
            self._let_in(identity)

    def _let_in(self, identity: str) -> None:
        """Let a reservation hold that waited for its quotas, or does again.

        It stands behind all that hold by now: they were there while it was not.
        """
        for entry in tuple(self._register.same(identity)):
            if self._is_active(entry) and not entry.is_holding:
                self._stand_last(entry)
            self._hold(entry)

    def _stand_last(self, entry: Entry) -> None:
        """Let an entry stand behind all that was written or has started before."""
        self._latest = math.nextafter(self._latest, math.inf)
        for hold in entry.holds.values():
            hold.since = Written(self._latest, self._latest)

    def _settle_all(self, identity: str) -> None:
        for entry in self._register.same(identity):
            self._settle(entry)

    def _expect_turns(self, entry: Entry) -> None:
        for turn in self._turns_of(entry):
            heapq.heappush(self._turns, turn)
        # Those of what was edited or removed stay until their moment, or there are too many.
        if len(self._turns) > _SPARE_TURNS + _TURNS_PER_ENTRY * len(self._register):
            self._expect_all_turns()

    def _expect_all_turns(self) -> None:
        self._turns = [turn for entry in self._register for turn in self._turns_of(entry)]
        heapq.heapify(self._turns)

    def _turns_of(self, entry: Entry) -> Iterator[_Turn]:
        """Yield the moments to come at which an entry starts and ends."""
        reservation = entry.reservation
        for at in (reservation.starts_at, reservation.expires_at):
            if at is not None and at > self._now:
                yield (at, entry.order, reservation.ref, reservation.digest)

    def _settle(self, entry: Entry) -> None:
        """Make the entry hold what its phase, its claims and the quotas leave of it."""
        reservation = entry.reservation
        with sparing(partial(self._failed, reservation.ref)):
            self.quotas.charge(reservation, self._unclaimed(entry), self._now)
            self._hold(entry)
            self._admit(reservation.ref.namespace)

    def _hold(self, entry: Entry) -> None:
        """Make the entry hold what it may."""
        reservation = entry.reservation
        self._settled(reservation.ref)
        is_holding = self._is_active(entry) and self._register.is_first(entry)
        left, _ = entry.left() if is_holding else ({}, 0)
        for node, hold in entry.holds.items():
            slots = left.get(node, 0)
            if slots != hold.slots:
                hold.slots = slots
                amounts = {name: amount * slots for name, amount in reservation.resources.items()}
                self._holdings.hold(hold, amounts if slots else {})

    def _unclaimed(self, entry: Entry) -> int:
        """Return how many slots count in the quotas: what may come back is not free yet."""
        reservation = entry.reservation
        if reservation.expires_at is not None and self._now >= reservation.expires_at:
            return 0
        if reservation.reusable:
            return reservation.slots
        return max(0, reservation.slots - self._claims.count_written(entry.claimants))
