"""The cache of Reservation objects, which feeds them into the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reserver.k8s.objects.objects import Metadata
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.reservation import Ref, Written
from reserver.stores.cache import Cache, Name, when_written
from reserver.stores.edits import Deletion
from reserver.stores.object.codec import RESERVATION, ReservationObject, path
from reserver.stores.object.edits import Abandonment
from reserver.stores.object.entries import KnownObject, ObjectReading, Sets, with_placements
from reserver.stores.object.status_codec import digest, idle_since, latest, recorded, was_admitted


@dataclass(eq=False, repr=False)
class ObjectCache(Cache[KnownObject, Deletion | Abandonment]):
    """All Reservation objects, by ref.

    Attributes:
        home: Reserver's own namespace.
        reading: reads the objects, and counts them by namespace.
    """

    event_kind = RESERVATION
    most_problems = 1
    _within = "spec."

    home: str = field(kw_only=True)
    _known: dict[Name, KnownObject] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin with an empty cache."""
        self.reading = ObjectReading(self.clock, self.home)
        self._sets = Sets(self.changed)

    def put(self, item: ReservationObject, *, listed: bool = False) -> None:
        """Process the present object, from a watch or, after missed changes, from a list."""
        self.ledger.advance(self.clock())
        name = (item.metadata.namespace, item.metadata.name)
        before, former = self._known.get(name), self.subject(item.ref)
        when = when_written(item.metadata, former, listed=listed)
        if before is not None and before.metadata.uid != item.metadata.uid:
            self.drop(name)  # Deleted while no watch was running: its successor inherits nothing.
            before = None
        if before is not None and before.is_of(item):
            if item.metadata.revision < before.metadata.revision:
                return  # The answer to a write (`wrote`) came before this event.
            self._update(before, item, when)
            self._sets.put(item.ref, item.metadata)
            if self.due_edit(item.ref, self.clock()):
                self.changed(item.ref)  # A deletion may have failed because of this write.
            self._awaited.check()
            return
        known = self.reading.read(item, before, is_pending=item.ref in self._expected)
        self._known[name] = known
        self._sets.put(item.ref, item.metadata)
        self.changed(item.ref)
        if self.is_expected(item):
            del self._expected[item.ref]
        self._exchange(item.ref, before, known, when)
        self._recall(item.ref, known)
        self._awaited.check()

    def drop(self, name: Name, revision: int = 0) -> None:
        """Drop an object that was deleted at a resourceVersion; 0 if unknown."""
        ref, known = Ref.of_object(*name), self._known.get(name)
        if known is not None and known.reservation is not None:
            self._report_ended(known.reservation, known.text)
        self._known.pop(name, None)
        expected = self._expected.get(ref)
        if known is not None:
            self.reading.forget(name[0], known)
            self.changed(ref)
            self.ledger.drop(ref)
            self._sets.drop(ref)
            if expected is not None:  # The deleted object may be an older one of that name.
                expected.gone_at = revision
                self._promise(expected)
        elif expected is not None and expected.uid:
            self._forget(ref)  # Created and deleted between two events of the watch.
        self._awaited.check()

    def listed(self, revision: int) -> None:
        """Record that a list at a resourceVersion has shown all objects."""
        for ref, expected in self._expected.items():
            if not expected.uid and self.known(ref) is None:
                expected.gone_at = revision

    def is_expected(self, item: ReservationObject) -> bool:
        """Return whether an object is the pending one of its ref."""
        expected = self._expected.get(item.ref)
        if expected is None:
            return False
        if expected.uid:
            return expected.uid == item.metadata.uid
        return self.reading.entries(item).has_same_reservations(expected.entries)

    def written(self, ref: Ref, made: Metadata) -> None:
        """Record that a pending object was written; `made` is its metadata."""
        expected, known = self._expected.get(ref), self.known(ref)
        if expected is None:
            return  # The watch has shown it already.
        if known is not None and known.metadata.uid == made.uid:
            del self._expected[ref]  # The watch has shown it already, with an edit since.
            self._awaited.check()
        elif known is None and 0 < made.revision <= expected.gone_at:
            self._forget(ref)  # Created and deleted between two events of the watch.
            self._awaited.check()
        else:
            expected.uid = made.uid

    def wrote(self, item: ReservationObject) -> None:
        """Update an object from the answer to a write, ahead of the watch."""
        known = self.known(item.ref)
        if (
            known is not None
            and known.is_of(item)
            and known.metadata.revision <= item.metadata.revision
        ):
            self._update(known, item, when_written(item.metadata, None, listed=False))

    def abandon_unfinished(self) -> tuple[str, ...]:
        """Delete the unfinished sets of earlier processes; return their ids."""
        found = {k.metadata.set_id for k in self._known.values() if k.metadata.is_unfinished}
        for set_id in found:
            self._sets.doom(set_id)
        return tuple(sorted(found))

    async def take_back(self, first: Ref, set_id: str) -> bool:
        """Delete a set that its writer could not finish; return True once it is deleted.

        Return False if a request without an answer has finished the set: then it stays.
        """
        self._sets.doom(set_id)
        await self.until(lambda: first not in self._expected)
        known = self.known(first)
        if known is None or known.metadata.set_id != set_id:
            self._sets.abandon(set_id)
        elif not known.metadata.is_unfinished:
            self._sets.forget(set_id)
        await self.until(lambda: not (self._has(set_id) and self._sets.is_doomed(set_id)))
        is_gone = not self._has(set_id)
        self._sets.forget(set_id)
        return is_gone

    def _has(self, set_id: str) -> bool:
        """Return whether a member of a set is cached or pending."""
        expected = (each.set_id for each in self._expected.values())
        return self._sets.has(set_id) or set_id in expected

    def is_unfinished(self, ref: Ref) -> bool:
        """Return whether an object belongs to a set that is being written or rolled back.

        While a set is being written, True only for its first member.
        """
        known, expected = self.known(ref), self._expected.get(ref)
        if known is not None and known.metadata.is_unfinished:
            return True
        set_id = known.metadata.set_id if known else expected.set_id if expected else ""
        return self._sets.is_doomed(set_id)

    async def placed(self, ref: Ref) -> None:
        """Wait until the status of an object has the placements of its reservation."""
        await self.until(lambda: not self._is_unrecorded(ref))

    def _is_unrecorded(self, ref: Ref) -> bool:
        """Return whether the status of a stored or pending object lacks its placements."""
        known, expected = self.known(ref), self._expected.get(ref)
        if known is not None:
            stored = known.reservation
            return stored is not None and self.ledger.placed(stored) != stored.placed
        return expected is not None and any(r.placed for r in expected.entries.reservations)

    async def as_seen(self, ref: Ref, text: str) -> KnownObject | None:
        """Return an object if its spec is still `text`; None if it is not.

        Wait for a pending object: the API server may return its spec in another notation.
        """
        known, expected = self.known(ref), self._expected.get(ref)
        if known is not None or expected is None or expected.text != text:
            return known if known is not None and known.text == text else None
        await self.until(lambda: ref not in self._expected)
        known = self.known(ref)
        is_same = known is not None and known.entries.has_same_reservations(expected.entries)
        return known if is_same else None

    def names(self) -> tuple[Name, ...]:
        """Return namespace and name of the objects that are cached, or written but not shown."""
        expected = ((ref.namespace, ref.key) for ref, each in self._expected.items() if each.uid)
        return tuple({**self._known, **dict.fromkeys(expected)})

    def known(self, ref: Ref) -> KnownObject | None:
        """Return a cached object; None if it is absent."""
        return self._known.get((ref.namespace, ref.key))

    def all_known(self) -> Iterator[KnownObject]:
        """Yield all cached objects."""
        yield from self._known.values()

    def subject(self, ref: Ref) -> Metadata | None:
        """Return the metadata of a cached object; None if it is absent."""
        return known.metadata if (known := self.known(ref)) else None

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each namespace with the number of its objects that are not enforced."""
        counts: dict[str, int] = {}
        for (namespace, _), known in self._known.items():
            counts[namespace] = counts.get(namespace, 0) + len(known.entries.problems)
        for namespace, count in counts.items():
            yield (namespace, "reservations.reserver.io"), count

    def tidied(self, ref: Ref, known: KnownObject) -> Deletion | Abandonment | None:
        """Return the deletion of an ended object; None if it stays.

        The first member of an unfinished set stays, and is deleted last when the set is abandoned:
        it leads to the other members. Before the first deletion it is marked as abandoned, so that
        no writer finishes the set while its members are being deleted.
        """
        over = filter(self._is_over, known.entries.reservations)
        metadata, endings = known.metadata, self._endings(over)
        if metadata.is_unfinished and not metadata.is_abandoned:
            is_doomed = self._sets.is_doomed(metadata.set_id)
            return Abandonment(ref, path(ref), metadata) if is_doomed else None
        if self._sets.is_abandoned(metadata.set_id):
            if not self._sets.may_go(metadata):
                return None
            reason = "Unfinished"
        elif not endings:
            return None
        else:
            reason = endings[0].outcome.value
        version = metadata.resource_version
        return Deletion(ref, path(ref), metadata.uid, version, reason, endings)

    def _update(self, known: KnownObject, item: ReservationObject, when: Written) -> None:
        """Process an object with an unchanged spec."""
        if item.metadata.labels != known.metadata.labels:
            self.changed(item.ref)
        known.metadata, known.status = item.metadata, item.stored_status()
        before = known.reservation
        after = before and with_placements(before, known.status)
        if after is not None and after != before:
            known.entries = replace(known.entries, reservations=(after,))
            self.ledger.put(after, when)
            self.changed(item.ref)
        self._recall_idle(item.ref, known)
        self._awaited.check()

    def _exchange(
        self, ref: Ref, before: KnownObject | None, known: KnownObject, when: Written
    ) -> None:
        reservation = known.reservation
        if reservation is None:
            self.ledger.drop(ref)
        elif before is None or reservation != before.reservation:
            self._enforce(known.metadata, reservation, when)
        for problem in known.entries.problems:
            self.report(known.metadata, problem)

    def labels(self, ref: Ref) -> Mapping[str, str]:
        """Return the labels of a stored or pending object."""
        known, expected = self.known(ref), self._expected.get(ref)
        if known is None:
            return expected.labels if expected else {}
        return known.metadata.labels or {}

    def owner(self, ref: Ref) -> Mapping[str, object] | None:
        """Return the owner reference of a pending object; None without one."""
        expected = self._expected.get(ref)
        return expected.owner if expected else None

    def _claimed_at(self, ref: Ref) -> Mapping[str, float]:
        """Return the times of the claims in the status, in unix seconds by pod UID."""
        known = self.known(ref)
        claims = known.status.claims if known and known.status else ()
        return {claim.uid: parse_moment(claim.at) for claim in claims}

    def _recall(self, ref: Ref, known: KnownObject) -> None:
        """Restore claims and admission from the status, if it is of the present spec."""
        reservation, status, metadata = known.reservation, known.status, known.metadata
        if reservation and status and status.observed_generation == metadata.generation:
            landed = recorded(status)
            claims = dict.fromkeys(landed, metadata.revision)
            self.ledger.past.recall(ref, digest(reservation, status), claims, landed)
            self.recall_occurrence(ref, latest(status))
            if was_admitted(status):
                self.ledger.was_admitted(ref, reservation.digest)
        self._recall_idle(ref, known)

    def _recall_idle(self, ref: Ref, known: KnownObject) -> None:
        """Restore the start of the idle time from the status, if it is of the present spec."""
        reservation, status = known.reservation, known.status
        if reservation is None or status is None or status.idle_since is None:
            return
        if status.observed_generation == known.metadata.generation:
            self.ledger.was_idle(ref, digest(reservation, status), idle_since(status))
