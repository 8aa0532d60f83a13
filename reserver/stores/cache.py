"""The cache of a store, which feeds its entries into the ledger: the base of both kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

from reserver.base.quarantine import quarantined
from reserver.cluster.quantity import shorten
from reserver.errors import Fault, InvalidInput
from reserver.k8s.objects.limits import MOST_COPIES
from reserver.k8s.objects.objects import Metadata, ObjectKind
from reserver.k8s.watch.lag import Awaited
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.outcome import Ending, LastStatus, ending_of
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Ref, Reservation, Written
from reserver.stores.edits import Tidying
from reserver.stores.entries import MOST_PROBLEMS, Entries, EntryProblem

Name = tuple[str, str]
"""Namespace and name of an object."""


class CachedEntry(Protocol):
    """A data key or a Reservation, as last read."""

    entries: Entries

    @property
    def text(self) -> str:
        """The text of the data key or spec, as stored by the API server."""


K = TypeVar("K", bound=CachedEntry)
E = TypeVar("E", bound=Tidying)


@dataclass(slots=True)
class Expected:
    """A pending write at a ref, which no watch has shown yet.

    Attributes:
        text: the text to write.
        entries: the entries in this text.
        set_id: the set of the reservation; empty without a set.
        owner: the owner reference of the object; None without an owner.
        revision: the resourceVersion of the write; None until the API server has answered.
        uid: the UID of the written object; empty until the API server has answered.
        gone_at: the last resourceVersion at which the object was absent; 0 if not observed.
    """

    text: str
    entries: Entries
    labels: Mapping[str, str] = field(default_factory=dict)
    set_id: str = ""
    owner: Mapping[str, object] | None = None
    revision: int | None = None
    uid: str = ""
    gone_at: int = 0


@dataclass(eq=False, repr=False)
class Cache(ABC, Generic[K, E]):
    """The entries of one kind of store, as shown by its watches, and the pending writes.

    Unchanged text is not parsed again, and unchanged entries do not touch the ledger.

    Attributes:
        event_kind: the kind of the objects in events about reservations.
        most_problems: the most problems that are reported for one ref.
        ledger: the ledger that receives the reservations.
        clock: returns unix seconds.
        report: called with each problem, and the metadata of its object.
        changed: called with each ref that was changed or removed.
        ended: called with the ending of each reservation that was removed from the store.
    """

    event_kind: ClassVar[ObjectKind]
    most_problems: ClassVar[int] = MOST_PROBLEMS
    _within: ClassVar[str] = ""  # The path prefix of a reservation's fields, such as "spec.".

    ledger: Ledger
    clock: Callable[[], float]
    report: Callable[[Metadata, EntryProblem], None]
    changed: Callable[[Ref], None] = lambda _: None
    ended: Callable[[Ending], None] = lambda _: None
    _expected: dict[Ref, Expected] = field(default_factory=dict, init=False)
    _awaited: Awaited = field(default_factory=Awaited, init=False)

    @abstractmethod
    def known(self, ref: Ref) -> K | None:
        """Return the cached data key or object at a ref, ignoring its `item`; None if absent."""

    @abstractmethod
    def all_known(self) -> Iterator[K]:
        """Yield all cached data keys or objects."""

    @abstractmethod
    def subject(self, ref: Ref) -> Metadata | None:
        """Return the metadata of the object of a ref; None if the object is not cached."""

    @abstractmethod
    def names(self) -> tuple[Name, ...]:
        """Return the names of the cached ConfigMaps or Reservations."""

    @abstractmethod
    def written(self, ref: Ref, made: Metadata) -> None:
        """Record that the expected write at a ref succeeded; `made` is the written metadata."""

    @abstractmethod
    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each object of the store with the number of its entries that are not enforced."""

    @abstractmethod
    def tidied(self, ref: Ref, known: K) -> E | None:
        """Return the cleaner's edit of a cached key or object at the present (`due_edit`)."""

    def is_unfinished(self, ref: Ref) -> bool:  # noqa: ARG002 - a single write is never half done
        """Return whether an entry belongs to a set that is being written or rolled back."""
        return False

    def abandon_unfinished(self) -> tuple[str, ...]:
        """Delete the sets whose writer has stopped; return their ids."""
        return ()

    def due_edit(self, ref: Ref, now: float) -> E | None:
        """Return the cleaner's edit of a ref, `item` empty, at `now` (unix seconds).

        The edit removes ended entries, and completes the others.
        """
        self.ledger.advance(now)
        known = self.known(ref)
        return self.tidied(ref, known) if known is not None else None

    def entries(self, ref: Ref) -> Entries | None:
        """Return the entries at a ref; None if it is absent."""
        known = self.known(ref)
        return known.entries if known else None

    def problems(self) -> Iterator[EntryProblem]:
        """Yield the problems of all entries that are not enforced."""
        for known in self.all_known():
            yield from known.entries.problems

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return the text and entries at a ref, stored or pending; None if neither exists."""
        here = self.known(ref) or self._expected.get(ref)
        return (here.text, here.entries) if here else None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        await self._awaited.until(condition)

    async def superseded(self, ref: Ref, text: str) -> None:
        """Wait until the text at a ref differs from `text`."""
        await self.until(lambda: (self.latest(ref) or ("",))[0] != text)

    def on_fault(self, ref: Ref, fault: Fault) -> None:
        """Report an entry whose evaluation raised an exception; its hold stays.

        The entry counts as invalid until it is written again.
        """
        known, metadata = self.known(ref), self.subject(ref)
        problem = EntryProblem(ref, fault.under(f"[{ref.item}]") if ref.item else fault)
        if known is None or metadata is None:
            return
        before = known.entries.problems
        if len(before) < self.most_problems and str(problem) not in map(str, before):
            known.entries = replace(known.entries, problems=(*before, problem))
            self.report(metadata, problem)
            self.changed(ref)

    def expect(self, ref: Ref, expected: Expected) -> None:
        """Hold the reservations of a pending write; `written` or `withdraw` must follow."""
        self.ledger.advance(self.clock())
        self._expected[ref] = expected
        self._promise(expected)

    def withdraw(self, ref: Ref) -> None:
        """Release the hold of a pending write that has failed."""
        if ref in self._expected:
            self._forget(ref)
            self._awaited.check()

    def _promise(self, expected: Expected) -> None:
        for reservation in expected.entries.reservations:
            self.ledger.put(reservation, NOT_YET)

    def _forget(self, ref: Ref) -> None:
        """Drop the pending write at a ref; without a stored entry its hold ends."""
        expected = self._expected.pop(ref)
        if self.known(ref) is None:
            for reservation in expected.entries.reservations:
                self.ledger.drop(reservation.ref)
        self.changed(ref)

    def _enforce(self, metadata: Metadata, reservation: Reservation, when: Written) -> None:
        """Put a stored reservation into the ledger; an exception affects only this reservation."""
        ref = reservation.ref
        if self.ledger.copies(reservation) >= MOST_COPIES:
            self._refuse(reservation)
            return
        with quarantined("ledger", ref, partial(self.on_fault, ref)):
            self.ledger.put(reservation, when)
            if self.ledger.phase(ref) is Phase.EXPIRED and not reservation.is_retained:
                field = "schedule.until" if reservation.recurrence else "expiresAt"
                field = self._within + ("expire" if ref.item else field)
                remedy = "write a time in the future; Reserver removes this entry"
                error = InvalidInput(field, "lies in the past, so nothing is held", remedy)
                self.report(metadata, EntryProblem(ref, error))

    def _refuse(self, reservation: Reservation) -> None:
        """Mark a surplus copy of a reservation invalid until it is written again."""
        known, ref = self.known(reservation.ref), reservation.ref
        text = f"{shorten(reservation.record)!r} is the origin of {MOST_COPIES} others here"
        remedy = "remove it to make this a separate reservation; copies of one origin hold once"
        problem = EntryProblem(ref, InvalidInput(f"{self._within}origin", text, remedy))
        if known is not None:
            stays = tuple(each for each in known.entries.reservations if each.ref != ref)
            known.entries = replace(
                known.entries, reservations=stays, problems=(*known.entries.problems, problem)
            )
        self.ledger.drop(ref)

    def _endings(self, over: Iterable[Reservation]) -> tuple[Ending, ...]:
        """Return the endings of ended reservations that are not retained."""
        return tuple(
            Ending.of(each, self.ledger, self.clock()) for each in over if not each.is_retained
        )

    def _report_ended(self, reservation: Reservation, text: str) -> None:
        """Report the ending of a removed reservation, before the ledger drops it.

        Args:
            text: the last text of its data key or spec.
        """
        ref = reservation.ref
        if not self.ledger.is_written_twice(ref):  # A second copy: it is being migrated.
            with quarantined("history", ref):
                now, since = self.clock(), self.ledger.since(ref)
                if (held := self.ledger.get(ref)) is not None and held.recurrence is not None:
                    created_at = reservation.created_at or held.created_at  # It may begin earlier.
                    since = min(now, max(created_at, held.starts_at or 0.0))
                    now = min(now, held.expires_at or now)
                claimed_at = self._claimed_at(ref)
                ending = Ending.of(reservation, self.ledger, now, since, claimed_at)
                self.ended(replace(ending, text=text))

    def occurrence_over(self, ref: Ref) -> None:
        """Report the ending of an occurrence, before the next occurrence is held."""
        known, held = self.known(ref), self.ledger.get(ref)
        if known is None or held is None or held.recurrence is None:
            return
        if not held.recurrence.is_suspended:
            self._report_ended(held, known.text)

    def recall_occurrence(self, ref: Ref, status: LastStatus | None) -> None:
        """Report an occurrence that ended while no Reserver ran; `status` is its last status."""
        known, held = self.known(ref), self.ledger.get(ref)
        ending = ending_of(held, status, self.clock()) if held and status else None
        if known is not None and ending is not None:
            with quarantined("history", ref):
                self.ended(replace(ending, text=known.text))

    def _claimed_at(self, ref: Ref) -> Mapping[str, float]:  # noqa: ARG002 - for subclasses
        """Return the times of recorded claims, in unix seconds by pod UID."""
        return {}

    def labels(self, ref: Ref) -> Mapping[str, str]:  # noqa: ARG002 - for subclasses
        """Return the labels of a reservation."""
        return {}

    def _is_over(self, reservation: Reservation) -> bool:
        """Return whether the ledger has this reservation at its ref, and it has ended."""
        held = self.ledger.get(reservation.ref)
        if held is None or held.record != reservation.record:
            return False
        is_same = held.digest == reservation.digest or (
            series_digest(held.digest) == series_digest(reservation.digest)
        )
        return is_same and self.ledger.is_over(reservation.ref)


def when_written(now: Metadata, before: Metadata | None, *, listed: bool) -> Written:
    """Return the range of resourceVersions in which the changes of an object were written.

    An object from a list may have been written several times since it was last read.
    """
    revision = now.revision
    if not revision:
        return ANY_TIME
    if not listed:
        return Written(revision, revision)
    return Written(before.revision + 1 if before else 0, revision)
