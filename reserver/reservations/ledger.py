"""The ledger: what is held where, for whom, at this instant.

Everything in it follows from the reservations as written, the claims that bound pods carry and the
time; it can be rebuilt from those. It writes what is held into the snapshot's matrix as it changes,
so that a decision costs the same with ten reservations or ten thousand.

A reservation may stand in two places for a while, because it is moved from one store to another
(docs/adr/0009): what has the same identity is one reservation, and holds once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations import owner
from reserver.reservations.claims import Claims
from reserver.reservations.holdings import UNSEEN, Entry, Holdings
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Phase, Ref, Reservation, Written

_OVER = (Phase.CLAIMED, Phase.EXPIRED)


class Ledger:
    """What is held where, for whom, at this instant."""

    def __init__(
        self,
        snapshot: Snapshot,
        freed: Callable[[str], None] = lambda _: None,
        settled: Callable[[Ref], None] = lambda _: None,
    ) -> None:
        """Keep a ledger.

        Args:
            snapshot: what is held is written into its matrix.
            freed: is told of each node on which less is held than before.
            settled: is told of each reservation whose phase may have changed.
        """
        self._snapshot = snapshot
        self._holdings = Holdings(snapshot, freed)
        self._settled = settled
        self._now = 0.0
        self._entries: dict[Ref, Entry] = {}
        self._by_owner: dict[owner.Key, dict[Ref, Entry]] = {}
        self._claims = Claims()
        self._same: dict[str, dict[Ref, Entry]] = {}  # By identity; the first of them holds.
        self._latest = 0.0
        self._turns: list[tuple[float, int, Ref, str]] = []
        self._sequence = count()

    def __iter__(self) -> Iterator[tuple[Reservation, Phase]]:
        """Yield every reservation with its phase, in the order in which they became known."""
        for entry in self._entries.values():
            yield entry.reservation, self._phase(entry)

    def __len__(self) -> int:
        """Return how many reservations are known, ended ones included."""
        return len(self._entries)

    def get(self, ref: Ref) -> Reservation | None:
        """Return what is written at a place."""
        entry = self._entries.get(ref)
        return entry.reservation if entry else None

    def phase(self, ref: Ref) -> Phase | None:
        """Return the phase of a reservation, None when there is none of that name."""
        entry = self._entries.get(ref)
        return self._phase(entry) if entry else None

    def put(self, reservation: Reservation, written: Written = ANY_TIME) -> None:
        """Take a reservation as written; what stood at its place before is gone.

        Args:
            reservation: what is written.
            written: when. A pod that it names and that was bound after that has ended it, even if
                its binding became known first. `NOT_YET` while it is being written: it holds at
                once, and is put again when the write is seen.
        """
        before = self._entries.get(reservation.ref)
        since = written
        if written.last < ANY_TIME.last:
            self._latest = max(self._latest, written.last)
        if before is not None:
            if before.reservation == reservation:
                if before.written is NOT_YET:
                    self._confirm(before, written)
                return
            if before.holding and reservation.holds_no_more_than(before.reservation):
                since = before.since
            self.drop(reservation.ref)
        entry = Entry(
            reservation,
            since,
            written,
            self._claimants(reservation, written),
            next(self._sequence),
        )
        same = self._same.setdefault(reservation.identity, {})
        if same:
            first = next(iter(same.values()))
            first.claimants |= entry.claimants
            entry.claimants, entry.since = first.claimants, first.since
        same[reservation.ref] = self._entries[reservation.ref] = entry
        for key in _owner_keys(reservation):
            self._by_owner.setdefault(key, {})[reservation.ref] = entry
        self._expect_turns(reservation)
        self._settle_all(reservation.identity)

    def _claimants(self, reservation: Reservation, written: Written) -> dict[str, int]:
        """Return the owners that are known to have taken a slot, as an entry has them."""
        pods = self._claims.of(reservation.identity).values()
        claimants = {
            pod.uid: pod.revision if self._claims.are_written({pod.uid}) else UNSEEN
            for pod in pods
            if _takes_slot(pod, reservation)
        }
        bound = (self._claims.bound_after(pod, written.last) for pod in reservation.owners)
        return claimants | dict(filter(None, bound))

    def _confirm(self, entry: Entry, written: Written) -> None:
        """Take note of when a reservation that held before it was written has been."""
        entry.since = entry.written = written
        entry.claimants |= self._claimants(entry.reservation, written)
        self._settle_all(entry.reservation.identity)

    def drop(self, ref: Ref) -> None:
        """Forget a reservation that is no longer written; one that is not known is passed over."""
        entry = self._entries.pop(ref, None)
        if entry is None:
            return
        was_first = self._is_first(entry)
        same = self._same[entry.reservation.identity]
        del same[ref]
        self._holdings.hold(entry, {})
        if not same:
            del self._same[entry.reservation.identity]
        elif was_first:  # The next one takes its place in the row.
            heir = next(iter(same.values()))
            heir.since = entry.since
            self._settle(heir)
        for key in _owner_keys(entry.reservation):
            refs = self._by_owner[key]
            del refs[ref]
            if not refs:
                del self._by_owner[key]

    def claim(self, identity: str, pod: Pod, *, written: bool = True) -> None:
        """Record that a pod took a slot, also of a reservation that is not known (yet).

        What a pod says it claimed counts only if it is an owner: whoever creates a pod can write
        what they like on it. One that is not written yet may be taken back.
        """
        self._claims.add(identity, pod, written=written)
        for entry in self._identified(identity):
            if _takes_slot(pod, entry.reservation):
                if entry.claimants.get(pod.uid, UNSEEN) == UNSEEN:
                    entry.claimants[pod.uid] = pod.revision if written else UNSEEN
            elif entry.reservation.reusable:
                entry.claimants.pop(pod.uid, None)
        self._settle_all(identity)

    def bound(self, pod: Pod, *, exact: bool) -> None:
        """Take note that a pod was bound just now, by whomever: that ends all that named it.

        Args:
            pod: as it is shown bound; what was certainly written after its revision is for another
                pod of that name, or for a move.
            exact: that is the binding's own resourceVersion, not that of a later change of the pod.
        """
        for entry in self._naming(pod.name):
            if self._phase(entry) not in _OVER and entry.written.first <= pod.revision:
                self.claim(entry.reservation.identity, pod)
        if exact:
            self._claims.bound(pod)

    def written(self, pod_uid: str) -> None:
        """Take note that the API server has what a pod claimed: nothing takes it back any more."""
        if self._claims.written(pod_uid):
            for identity in self._claims.by(pod_uid):
                for entry in self._identified(identity):
                    self._settled(entry.reservation.ref)

    def unclaim(self, pod_uid: str) -> None:
        """Take back what a pod claimed: its binding failed."""
        for identity in self._claims.forget(pod_uid):
            for entry in self._identified(identity):
                entry.claimants.pop(pod_uid, None)
            self._settle_all(identity)

    def recall(self, ref: Ref, digest: str, claims: Mapping[str, int]) -> None:
        """Take what was recorded of a reservation: the claims of pods that may be gone by now.

        Args:
            ref: its place.
            digest: of the reservation that stood there.
            claims: UIDs of pods, each with a resourceVersion at which it had a slot. What was
                written after that is another reservation, if it says the same.
        """
        entry = self._entries.get(ref)
        if entry is None or entry.reservation.digest != digest or entry.reservation.reusable:
            return
        found = {uid: at for uid, at in claims.items() if entry.written.last <= at}
        if found.keys() - entry.claimants.keys():
            entry.claimants |= {**found, **entry.claimants}
            self._settle_all(entry.reservation.identity)

    def recall_binding(self, pod: Pod, *, exact: bool) -> bool:
        """Take a binding from before the watch of pods began; the pod may be gone by now.

        Returns whether it is sure which of the entries that it may have claimed are older.

        Args:
            pod: as it was shown bound.
            exact: its resourceVersion is that of the binding, not that of a later change.
        """
        named = self._naming(pod.name) if exact else ()
        claimed = (entry for identity in pod.claims for entry in self._identified(identity))
        is_sure = True
        for entry in {e.reservation.ref: e for e in (*claimed, *named)}.values():
            reservation = entry.reservation
            if reservation.is_owned_by(pod) and pod.uid not in entry.claimants:
                self.recall(reservation.ref, reservation.digest, {pod.uid: pod.revision})
                is_sure &= not entry.written.first <= pod.revision < entry.written.last
        if exact:
            self._claims.bound(pod)
        return is_sure

    def narrow(self, ref: Ref, identity: str, written: Written) -> None:
        """Take note that it is known better than before when a reservation was written."""
        entry = self._entries.get(ref)
        if entry is None or entry.reservation.identity != identity:
            return
        before = entry.written
        after = Written(max(before.first, written.first), min(before.last, written.last))
        if before.first == before.last or after.first > after.last:
            return  # It has been written again since.
        if entry.since == before:
            entry.since = after
        entry.written = after
        entry.claimants |= self._claimants(entry.reservation, after)
        self._settle_all(identity)

    def pod_gone(self, pod_uid: str) -> None:
        """Take note that a pod is no evidence of its claims any more.

        What it took stays taken as long as the reservation is written, unless it is reusable.
        """
        for identity in self._claims.forget(pod_uid):
            for entry in self._identified(identity):
                if entry.reservation.reusable:
                    entry.claimants.pop(pod_uid, None)
            self._settle_all(identity)

    def advance(self, now: float) -> None:
        """Let time pass until `now` (unix seconds): what starts then holds, what expires does not.

        Every decision calls this first; it costs nothing while nothing is due. If time has gone
        back, the clock was wrong before and is right now (`reserver.clock`): all is judged anew.
        """
        if now < self._now:
            self._now = now
            self._turns.clear()
            for entry in self._entries.values():
                self._expect_turns(entry.reservation)
                self._settle(entry)
        self._now = now
        while self._turns and self._turns[0][0] <= now:
            _, _, ref, digest = heapq.heappop(self._turns)
            entry_due = self._entries.get(ref)
            if entry_due is not None and entry_due.reservation.digest == digest:
                if not entry_due.holding:  # Starts now: after all that was written before.
                    entry_due.since = Written(self._latest + 0.5, self._latest + 0.5)
                self._settle(entry_due)

    def naming(self, pod: PodName) -> tuple[Reservation, ...]:
        """Return the reservations that name a pod and are not over, oldest first; each once."""
        entries = filter(self._is_first, self._naming(pod))
        return tuple(e.reservation for e in entries if self._phase(e) not in _OVER)

    def seats(self, pod: Pod) -> tuple[Reservation, ...]:
        """Return the reservations that hold capacity for a pod now, oldest first.

        Those that name it are all its own. Of those that it only matches it claims one: on each
        node the oldest whose slot covers its request, or else the oldest.
        """
        named = tuple(e.reservation for e in self._naming(pod.name) if e.holding)
        if named:
            return named
        found = {
            entry.order: entry
            for key in owner.keys(pod)
            for entry in self._by_owner.get(key, {}).values()
            if entry.holding and entry.reservation.is_owned_by(pod)
        }
        matched = (found[order] for order in sorted(found))
        on_node: dict[str, Reservation] = {}
        for reservation in (entry.reservation for entry in matched):
            known = on_node.setdefault(reservation.node, reservation)
            if not known.covers(pod.requests) and reservation.covers(pod.requests):
                on_node[reservation.node] = reservation
        return tuple(on_node.values())

    def _naming(self, pod: PodName) -> tuple[Entry, ...]:
        entries = self._by_owner.get(owner.named(pod), {}).values()
        return tuple(entry for entry in entries if pod in entry.reservation.owners)

    def held_on(self, node: str) -> Mapping[str, int]:
        """Return what is held on a node in all, exactly."""
        return self._holdings.on(node)

    def holding_on(self, node: str) -> Iterator[Reservation]:
        """Yield the reservations that hold capacity on a node now, oldest first."""
        return self._holdings.reservations_on(node)

    def held_after(self, node: str, seats: Iterable[Reservation]) -> dict[str, int]:
        """Return what is held on a node by reservations that stand behind all of these."""
        return self._holdings.after(node, (self._entries[seat.ref] for seat in seats))

    def yielding(self, pod: Pod, nodes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return what is held on some nodes, for others, that a pod's priority may take."""
        return self._holdings.yielding(pod, nodes)

    def holding(self, ref: Ref) -> Mapping[str, int]:
        """Return what one reservation holds now."""
        entry = self._entries.get(ref)
        return dict(entry.holding) if entry else {}

    def recorded(self, ref: Ref) -> Mapping[str, int]:
        """Return the claims of a reservation that a restart must not forget, for `recall`."""
        entry = self._entries.get(ref)
        if entry is None or entry.reservation.reusable:
            return {}
        return {uid: at for uid, at in entry.claimants.items() if at != UNSEEN}

    def claims(self, ref: Ref) -> dict[str, PodName]:
        """Return UID and name of the pods that took a slot of a reservation and are known."""
        entry = self._entries.get(ref)
        if entry is None:
            return {}
        known = self._claims.of(entry.reservation.identity)
        return {uid: known[uid].name for uid in entry.claimants.keys() & known.keys()}

    def _phase(self, entry: Entry) -> Phase:
        phase = entry.reservation.phase(len(entry.claimants), self._now)
        is_homeless = phase is Phase.ACTIVE and not self._snapshot.has_node(entry.reservation.node)
        return Phase.FAILED if is_homeless else phase

    def is_over(self, ref: Ref) -> bool:
        """Return whether a reservation has expired, or was claimed for good."""
        entry = self._entries[ref]
        phase = self._phase(entry)
        return phase is Phase.EXPIRED or (
            phase is Phase.CLAIMED
            and not entry.reservation.reusable
            and self._claims.are_written(entry.claimants)
        )

    def claimants(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods that were seen to have a slot, by UID; None for one that is gone."""
        entry = self._entries.get(ref)
        if entry is None:
            return {}
        pods = self._claims.of(entry.reservation.identity)
        return {uid: pods.get(uid) for uid, at in entry.claimants.items() if at != UNSEEN}

    def _identified(self, identity: str) -> Iterable[Entry]:
        return self._same.get(identity, {}).values()

    def _is_first(self, entry: Entry) -> bool:
        """Return whether it holds for all that have the same identity."""
        return next(iter(self._same[entry.reservation.identity].values())) is entry

    def _settle_all(self, identity: str) -> None:
        for entry in self._identified(identity):
            self._settle(entry)

    def _expect_turns(self, reservation: Reservation) -> None:
        for at in (reservation.starts_at, reservation.expires_at):
            if at is not None and at > self._now:
                turn = (at, next(self._sequence), reservation.ref, reservation.digest)
                heapq.heappush(self._turns, turn)

    def _settle(self, entry: Entry) -> None:
        """Make the entry hold what its phase and its claims leave of it."""
        reservation = entry.reservation
        self._settled(reservation.ref)
        if self._phase(entry) in {Phase.ACTIVE, Phase.FAILED} and self._is_first(entry):
            left = reservation.slots - len(entry.claimants)
            self._holdings.hold(
                entry, {name: amount * left for name, amount in reservation.resources.items()}
            )
        else:
            self._holdings.hold(entry, {})


def _takes_slot(pod: Pod, reservation: Reservation) -> bool:
    """Return whether a pod that says it claimed a reservation has a slot of it."""
    return reservation.is_owned_by(pod) and not (reservation.reusable and pod.finished)


def _owner_keys(reservation: Reservation) -> set[owner.Key]:
    named = {owner.named(pod) for pod in reservation.owners}
    return named | {rule.key() for rule in reservation.rules}
