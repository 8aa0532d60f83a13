"""The view of the other store: what Reservation objects say into the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reserver.errors import InvalidInput
from reserver.kube.store import Name, written
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Phase, Ref, Reservation, Written
from reserver.wire.edits import Deletion
from reserver.wire.objects import Metadata
from reserver.wire.reservation import (
    ObjectMetadata,
    ReservationObject,
    ReservationStatus,
    read_object,
)
from reserver.wire.store import Entries, Problem


@dataclass(slots=True)
class Known:
    """One Reservation as it was last read."""

    metadata: ObjectMetadata
    path: str
    spec: bytes
    entries: Entries
    said: ReservationStatus | None

    @property
    def reservation(self) -> Reservation | None:
        """What it says; None where it is not enforced."""
        return next(iter(self.entries.reservations), None)


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

    def put(self, item: ReservationObject, *, listed: bool = False) -> None:
        """Take an object as it is now, shown by a watch or, after changes were missed, a list."""
        self._ledger.advance(self._clock())
        name = (item.metadata.namespace, item.metadata.name)
        before = self._known.get(name)
        if (
            before is not None
            and before.metadata.uid == item.metadata.uid
            and before.spec == bytes(item.spec)
        ):
            before.metadata, before.said = item.metadata, item.said()
            if self.due_edit(item.ref, self._clock()):
                self._touched(item.ref)  # A deletion may have failed because of this write.
            return
        entries = read_object(item, self._clock(), self._home)
        when = written(item.metadata, before.metadata if before else None, listed=listed)
        known = Known(item.metadata, item.path, bytes(item.spec), entries, item.said())
        self._known[name] = known
        self._touched(item.ref)
        self._exchange(item.ref, before.reservation if before else None, known, when)
        self._recall(item.ref, known)

    def drop(self, name: Name) -> None:
        """Forget an object that is gone."""
        known = self._known.pop(name, None)
        if known is not None:
            ref = Ref(name[0], "", name[1])
            self._touched(ref)
            self._ledger.drop(ref)

    def wrote(self, item: ReservationObject) -> None:
        """Take note of what the API server made of a write of ours; the watch will show it, too."""
        known = self._known.get((item.metadata.namespace, item.metadata.name))
        if (
            known is not None
            and known.metadata.uid == item.metadata.uid
            and known.metadata.revision <= item.metadata.revision
            and known.spec == bytes(item.spec)
        ):
            known.metadata, known.said = item.metadata, item.said()

    def names(self) -> tuple[Name, ...]:
        """Return namespace and name of the objects that are read."""
        return tuple(self._known)

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

        Args:
            ref: its place; one that is not known needs none.
            now: unix seconds.
        """
        self._ledger.advance(now)
        known = self.known(ref)
        if known is None or known.reservation is None:
            return None
        if self._ledger.get(ref) != known.reservation or not self._ledger.is_over(ref):
            return None
        metadata = known.metadata
        phase = self._ledger.phase(ref) or Phase.EXPIRED
        return Deletion(ref, known.path, metadata.uid, metadata.resource_version, phase.value)

    def _exchange(self, ref: Ref, before: Reservation | None, known: Known, when: Written) -> None:
        reservation = known.reservation
        if reservation is None:
            self._ledger.drop(ref)
        elif reservation != before:
            self._ledger.put(reservation, when)
            self._warn_if_past(known.metadata, ref)
        for problem in known.entries.problems:
            self._report(known.metadata, problem)

    def _recall(self, ref: Ref, known: Known) -> None:
        """Take the claims that the status tells, if it is about the spec as it is."""
        reservation, said, metadata = known.reservation, known.said, known.metadata
        if reservation and said and said.observed_generation == metadata.generation:
            claims = {claim.uid: metadata.revision for claim in said.claims}
            self._ledger.recall(ref, reservation.digest, claims)

    def _warn_if_past(self, metadata: Metadata, ref: Ref) -> None:
        if self._ledger.phase(ref) is Phase.EXPIRED:
            remedy = "write a moment in the future; the cleaner deletes this object"
            error = InvalidInput("spec.expiresAt", "lies in the past, so nothing is held", remedy)
            self._report(metadata, Problem(ref, error))
