"""The view of the other store: what Reservation objects say into the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from reserver.errors import Fault, InvalidInput
from reserver.kube.stores.configmap.cache import Name, written
from reserver.kube.stores.object.known import Expected, Known
from reserver.kube.stores.object.sets import Sets
from reserver.kube.watch.awaited import Awaited
from reserver.quarantine import quarantined
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import NOT_YET, Phase, Ref, Reservation, Written
from reserver.wire.k8s.objects import Metadata
from reserver.wire.limits import MOST_OBJECTS
from reserver.wire.spec.edits import Deletion
from reserver.wire.spec.entries import Entries, Problem
from reserver.wire.spec.object import (
    ReservationObject,
    read_object,
    with_placements,
)
from reserver.wire.status.configmap import INVALID
from reserver.wire.status.object import was_admitted


class ObjectStore:
    """What all Reservation objects say.

    Only objects whose spec has changed are read again, and only those that say something else touch
    the ledger.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], float],
        report: Callable[[Metadata, Problem], None],
        touched: Callable[[Ref], None],
        home: str,
    ) -> None:
        """Keep a ledger up to date.

        Args:
            ledger: where reservations go.
            clock: unix seconds.
            report: is told of each object that is not enforced.
            touched: is told of each object that is written anew or removed.
            home: the namespace whose Reservations may have owners in any namespace.
        """
        self._ledger = ledger
        self._clock = clock
        self._report = report
        self._touched = touched
        self._home = home
        self._known: dict[Name, Known] = {}
        self._read_in: dict[str, int] = {}
        self._expected: dict[Ref, Expected] = {}
        self._sets = Sets()
        self._awaited = Awaited()

    def put(self, item: ReservationObject, *, listed: bool = False) -> None:
        """Take an object as it is now, shown by a watch or, after changes were missed, a list."""
        self._ledger.advance(self._clock())
        name = (item.metadata.namespace, item.metadata.name)
        before = self._known.get(name)
        if before is not None and before.is_of(item):
            self._update(before, item, listed=listed)
            self._sets.put(item.ref, item.metadata)
            if self.due_edit(item.ref, self._clock()):
                self._touched(item.ref)  # A deletion may have failed because of this write.
            self._awaited.check()
            return
        when = written(item.metadata, before.metadata if before else None, listed=listed)
        known = self._unread(item, before)
        if known is None:
            entries = self._read(item, before)
            known = Known(item.metadata, item.path, bytes(item.spec), entries, item.said())
        self._count_read(name[0], known.is_read - (before is not None and before.is_read))
        self._known[name] = known
        self._sets.put(item.ref, item.metadata)
        self._touched(item.ref)
        if self.is_expected(item):
            del self._expected[item.ref]
        self._exchange(item.ref, before.reservation if before else None, known, when)
        self._recall(item.ref, known)
        self._awaited.check()

    def _unread(self, item: ReservationObject, before: Known | None) -> Known | None:
        """Return an object as one of too many in its namespace; None for one that is to be read.

        One that was read before, also by who was here before, is read again: it may hold.
        """
        namespace, said = item.metadata.namespace, item.said()
        is_full = self._read_in.get(namespace, 0) >= MOST_OBJECTS and namespace != self._home
        was_read = (before is not None and before.is_read) or (
            said is not None and said.phase != INVALID
        )
        if was_read or not is_full:
            return None
        text = f"{MOST_OBJECTS} Reservations of this namespace are read, and this one is not"
        error = InvalidInput("", text, "delete some, and write it anew")
        entries = Entries(problems=(Problem(item.ref, error),))
        return Known(item.metadata, item.path, b"", entries, said, is_read=False)

    def _count_read(self, namespace: str, more: int) -> None:
        self._read_in[namespace] = self._read_in.get(namespace, 0) + more
        if not self._read_in[namespace]:
            del self._read_in[namespace]

    def _read(self, item: ReservationObject, before: Known | None) -> Entries:
        """Return what an object says now; what it said before stays where that cannot be told."""
        entries = before.entries if before else Entries()
        with quarantined("store", item.ref) as told:
            entries = read_object(item, self._clock(), self._home)
        if told:
            return replace(entries, problems=(Problem(item.ref, told[0]),))
        return entries

    def spoiled(self, ref: Ref, fault: Fault) -> None:
        """Take note of an object that could not be judged; what it holds it holds on.

        It counts as invalid until it is written anew.
        """
        known, problem = self.known(ref), Problem(ref, fault)
        if known is not None and not known.entries.problems:
            known.entries = replace(known.entries, problems=(problem,))
            self._report(known.metadata, problem)
            self._touched(ref)

    def drop(self, name: Name, revision: int = 0) -> None:
        """Forget an object that is gone at a resourceVersion, 0 if that is not known."""
        known = self._known.pop(name, None)
        ref = Ref.of_object(*name)
        if known is not None:
            self._count_read(name[0], -known.is_read)
            self._touched(ref)
            self._ledger.drop(ref)
            for member in self._sets.drop(ref):
                self._touched(member)
            if ref in self._expected:  # What is gone was another one of that name, perhaps.
                self._expected[ref].gone_at = revision
                self._hold(self._expected[ref])
        elif ref in self._expected and self._expected[ref].uid:
            self._forget(ref)  # It came and went unseen.
        self._awaited.check()

    def expect(self, ref: Ref, text: str, entries: Entries, set_id: str = "") -> None:
        """Let an object hold before it is written; `written` or `withdraw` has to follow.

        Args:
            ref: its place.
            text: its spec.
            entries: what that says.
            set_id: the set that it is a member of; empty if it stands alone.
        """
        self._ledger.advance(self._clock())
        self._expected[ref] = expected = Expected(text, entries, set_id)
        self._hold(expected)

    def is_expected(self, item: ReservationObject) -> bool:
        """Return whether an object is the one that is being written."""
        expected = self._expected.get(item.ref)
        if expected is None:
            return False
        if expected.uid:
            return expected.uid == item.metadata.uid
        found = read_object(item, self._clock(), self._home)
        return found.says_what(expected.entries)

    def listed(self, revision: int) -> None:
        """Take note that a list of a resourceVersion has shown all objects."""
        for ref, expected in self._expected.items():
            if not expected.uid and self.known(ref) is None:
                expected.gone_at = revision

    def written(self, ref: Ref, uid: str, revision: int = 0) -> None:
        """Take note that an expected object was written, of its UID and its resourceVersion."""
        expected, known = self._expected.get(ref), self.known(ref)
        if expected is None:
            return  # The watch was faster.
        if known is not None and known.metadata.uid == uid:
            del self._expected[ref]  # As well, and something has made it say something else.
            self._awaited.check()
        elif known is None and 0 < revision <= expected.gone_at:
            self._forget(ref)  # It came and went unseen.
            self._awaited.check()
        else:
            expected.uid = uid

    def withdraw(self, ref: Ref) -> None:
        """Take an expected object back: it was not written."""
        if ref in self._expected:
            self._forget(ref)
            self._awaited.check()

    def abandon_unfinished(self) -> tuple[str, ...]:
        """Have the sets deleted that nobody finishes any more; return what they are known by."""
        found = {k.metadata.set_id for k in self._known.values() if k.metadata.is_unfinished}
        for set_id in found:
            self._abandon(set_id)
        return tuple(sorted(found))

    async def take_back(self, set_id: str) -> None:
        """Have a set deleted that cannot be finished; return once nothing of it is left."""
        self._abandon(set_id)
        await self.until(lambda: not self._has(set_id))
        self._sets.forget(set_id)

    def is_ending(self, ref: Ref) -> bool:
        """Return whether an object is being taken back, because its set was not finished."""
        known, expected = self.known(ref), self._expected.get(ref)
        set_id = known.metadata.set_id if known else expected.set_id if expected else ""
        return self._sets.is_abandoned(set_id)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of the objects that are known."""
        await self._awaited.until(condition)

    async def placed(self, ref: Ref) -> None:
        """Wait until the status of an object says where it is placed, as far as it is."""
        await self.until(lambda: not self._is_unrecorded(ref))

    async def as_seen(self, ref: Ref, text: str) -> Known | None:
        """Return an object if its spec is still the one that was seen, None if it is not.

        One that no watch has shown yet is waited for; then it says the same in other words.
        """
        known, expected = self.known(ref), self._expected.get(ref)
        if known is not None or expected is None or expected.text != text:
            return known if known is not None and known.text == text else None
        await self.until(lambda: ref not in self._expected)
        known = self.known(ref)
        is_same = known is not None and known.entries.says_what(expected.entries)
        return known if is_same else None

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return spec and meaning of an object, written or being written; None without one."""
        known = self.known(ref)
        if known is not None:
            return known.text, known.entries
        expected = self._expected.get(ref)
        return (expected.text, expected.entries) if expected else None

    async def superseded(self, ref: Ref, text: str) -> None:
        """Wait until something else than this is written at a place, or nothing."""
        await self._awaited.until(lambda: (self.latest(ref) or ("",))[0] != text)

    def wrote(self, item: ReservationObject) -> None:
        """Take note of what the API server made of a write of ours; the watch will show it, too."""
        known = self._known.get((item.metadata.namespace, item.metadata.name))
        if (
            known is not None
            and known.is_of(item)
            and known.metadata.revision <= item.metadata.revision
        ):
            self._update(known, item)

    def _update(self, known: Known, item: ReservationObject, *, listed: bool = False) -> None:
        """Take an object whose spec is what it was."""
        when = written(item.metadata, known.metadata, listed=listed)
        known.metadata, known.said = item.metadata, item.said()
        before = known.reservation
        after = before and with_placements(before, known.said)
        if after is not None and after != before:
            known.entries = replace(known.entries, reservations=(after,))
            self._ledger.put(after, when)
            self._touched(item.ref)
        self._awaited.check()

    def names(self) -> tuple[Name, ...]:
        """Return namespace and name of the objects that are read, or written and not yet read."""
        expected = ((ref.namespace, ref.key) for ref, each in self._expected.items() if each.uid)
        return tuple({**self._known, **dict.fromkeys(expected)})

    def known(self, ref: Ref) -> Known | None:
        """Return what is known of an object, None when there is none."""
        return self._known.get((ref.namespace, ref.key))

    def problems(self) -> Iterator[Problem]:
        """Yield why objects are not enforced."""
        for known in self._known.values():
            yield from known.entries.problems

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each namespace with the number of its objects that are not enforced."""
        counts: dict[str, int] = {}
        for (namespace, _), known in self._known.items():
            counts[namespace] = counts.get(namespace, 0) + len(known.entries.problems)
        for namespace, count in counts.items():
            yield (namespace, "reservations.reserver.io"), count

    def due_edit(self, ref: Ref, now: float) -> Deletion | None:
        """Return the edit that tidies an object: its deletion once it is over.

        The first member of a set stays as long as the set is not finished, and goes last if that
        will never be: what leads to the others must not be lost.

        Args:
            ref: its place; one that is not known needs none.
            now: unix seconds.
        """
        self._ledger.advance(now)
        known = self.known(ref)
        if known is None:
            return None
        metadata = known.metadata
        if self._sets.is_abandoned(metadata.set_id):
            if not self._sets.may_go(metadata):
                return None
            reason = "Unfinished"
        elif metadata.is_unfinished or not self._is_over(ref, known):
            return None
        else:
            reason = (self._ledger.phase(ref) or Phase.EXPIRED).value
        return Deletion(ref, known.path, metadata.uid, metadata.resource_version, reason)

    def _is_unrecorded(self, ref: Ref) -> bool:
        """Return whether an object does not say where it is placed, or is about to be there."""
        known, expected = self.known(ref), self._expected.get(ref)
        if known is not None:
            said = known.reservation
            return said is not None and self._ledger.placed(said) != said.placed
        return expected is not None and any(r.placed for r in expected.entries.reservations)

    def _abandon(self, set_id: str) -> None:
        for ref in self._sets.abandon(set_id):
            self._touched(ref)

    def _has(self, set_id: str) -> bool:
        """Return whether anything of a set is there, or may be."""
        expected = (each.set_id for each in self._expected.values())
        return self._sets.has(set_id) or set_id in expected

    def _hold(self, expected: Expected) -> None:
        for reservation in expected.entries.reservations:
            self._ledger.put(reservation, NOT_YET)

    def _forget(self, ref: Ref) -> None:
        del self._expected[ref]
        if self.known(ref) is None:
            self._ledger.drop(ref)
        self._touched(ref)

    def _is_over(self, ref: Ref, known: Known) -> bool:
        held, reservation = self._ledger.get(ref), known.reservation
        return (
            held is not None
            and reservation is not None
            and held.identity == reservation.identity
            and self._ledger.is_over(ref)
        )

    def _exchange(self, ref: Ref, before: Reservation | None, known: Known, when: Written) -> None:
        reservation = known.reservation
        if reservation is None:
            self._ledger.drop(ref)
        elif reservation != before:
            with quarantined("ledger", ref, partial(self.spoiled, ref)):
                self._ledger.put(reservation, when)
                self._warn_if_past(known.metadata, ref)
        for problem in known.entries.problems:
            self._report(known.metadata, problem)

    def _recall(self, ref: Ref, known: Known) -> None:
        """Take the claims that the status tells, if it is about the spec as it is."""
        reservation, said, metadata = known.reservation, known.said, known.metadata
        if reservation and said and said.observed_generation == metadata.generation:
            claims = {claim.uid: metadata.revision for claim in said.claims}
            landed = {claim.uid: claim.node for claim in said.claims if claim.node}
            self._ledger.past.recall(ref, reservation.digest, claims, landed)
            if was_admitted(said):
                self._ledger.was_admitted(ref, reservation.digest)

    def _warn_if_past(self, metadata: Metadata, ref: Ref) -> None:
        if self._ledger.phase(ref) is Phase.EXPIRED:
            remedy = "write a moment in the future; the cleaner deletes this object"
            error = InvalidInput("spec.expiresAt", "lies in the past, so nothing is held", remedy)
            self._report(metadata, Problem(ref, error))
