"""The cache of a store: feeds its entries into the ledger. Both kinds of stores share it."""

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
from reserver.reservations.outcome import Ending
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Ref, Reservation, Written
from reserver.stores.configmap.entries import MOST_PROBLEMS, Entries, EntryProblem
from reserver.stores.object.edits import Tidying
from reserver.stores.passed import LastSaid, ending_of

Name = tuple[str, str]
"""Namespace and name of an object."""


class CachedEntry(Protocol):
    """A data key or a Reservation as it was last read."""

    entries: Entries

    @property
    def text(self) -> str:
        """What is written there, as the API server has it."""


K = TypeVar("K", bound=CachedEntry)
E = TypeVar("E", bound=Tidying)


@dataclass(slots=True)
class Expected:
    """A write at a ref that no watch has shown yet.

    Attributes:
        text: what is being written.
        entries: what that says.
        set_id: the set that it is a member of; empty if it stands alone.
        owner: the owner reference of the object; None for nobody's.
        revision: the resourceVersion that the write made; None until that is known.
        uid: of the object that the write made; empty until that is known.
        gone_at: a resourceVersion at which there was nothing there, as far as that is known.
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
    """The entries of one kind of store as watches have shown them, and pending writes.

    It does not read unchanged text again, and unchanged entries do not touch the ledger.

    Attributes:
        event_kind: of the objects that events about reservations are written on.
        most_problems: how many problems of one ref are reported.
        ledger: where reservations go.
        clock: unix seconds.
        report: called with what is not enforced, and the object that it is in.
        changed: called with each ref that is written again or removed.
        ended: called with what became of each reservation that is not written any more.
    """

    event_kind: ClassVar[ObjectKind]
    most_problems: ClassVar[int] = MOST_PROBLEMS
    _within: ClassVar[str] = ""  # Under which path the fields of a reservation stand there.

    ledger: Ledger
    clock: Callable[[], float]
    report: Callable[[Metadata, EntryProblem], None]
    changed: Callable[[Ref], None] = lambda _: None
    ended: Callable[[Ending], None] = lambda _: None
    _expected: dict[Ref, Expected] = field(default_factory=dict, init=False)
    _awaited: Awaited = field(default_factory=Awaited, init=False)

    @abstractmethod
    def known(self, ref: Ref) -> K | None:
        """Return what stands at a ref, whatever its `item`; None if nothing does."""

    @abstractmethod
    def all_known(self) -> Iterator[K]:
        """Yield what stands at all refs."""

    @abstractmethod
    def subject(self, ref: Ref) -> Metadata | None:
        """Return the metadata of the object that a ref is in; None if it is not read."""

    @abstractmethod
    def names(self) -> tuple[Name, ...]:
        """Return the ConfigMaps or Reservations that are read."""

    @abstractmethod
    def written(self, ref: Ref, made: Metadata) -> None:
        """Note that what was expected at a ref was written; `made` is the result."""

    @abstractmethod
    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield the parts of the store, each with how many of its entries are not enforced."""

    @abstractmethod
    def tidied(self, ref: Ref, known: K) -> E | None:
        """Return the cleaner's edit of a ref now (`due_edit`)."""

    def is_unfinished(self, ref: Ref) -> bool:  # noqa: ARG002 - what is one write is never half made
        """Return whether an entry is of a set that is being written, or taken back."""
        return False

    def abandon_unfinished(self) -> tuple[str, ...]:
        """Delete the sets that nobody will finish; return their ids."""
        return ()

    def due_edit(self, ref: Ref, now: float) -> E | None:
        """Return the cleaner's edit of a ref, `item` empty, at `now` (unix seconds).

        It removes entries that are over, and completes the others.
        """
        self.ledger.advance(now)
        known = self.known(ref)
        return self.tidied(ref, known) if known is not None else None

    def entries(self, ref: Ref) -> Entries | None:
        """Return what is written at a ref, None if nothing is."""
        known = self.known(ref)
        return known.entries if known else None

    def problems(self) -> Iterator[EntryProblem]:
        """Yield why entries are not enforced."""
        for known in self.all_known():
            yield from known.entries.problems

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return the entry that is written at a ref, or being written, and its reservation."""
        here = self.known(ref) or self._expected.get(ref)
        return (here.text, here.entries) if here else None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        await self._awaited.until(condition)

    async def superseded(self, ref: Ref, text: str) -> None:
        """Wait until a ref no longer says this."""
        await self.until(lambda: (self.latest(ref) or ("",))[0] != text)

    def on_fault(self, ref: Ref, fault: Fault) -> None:
        """Note an entry that could not be judged; it keeps what it holds.

        It counts as invalid until it is written again.
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
        """Let something hold before it is written; `written` or `withdraw` must follow."""
        self.ledger.advance(self.clock())
        self._expected[ref] = expected
        self._promise(expected)

    def withdraw(self, ref: Ref) -> None:
        """Take back what was expected at a ref: it was not written."""
        if ref in self._expected:
            self._forget(ref)
            self._awaited.check()

    def _promise(self, expected: Expected) -> None:
        for reservation in expected.entries.reservations:
            self.ledger.put(reservation, NOT_YET)

    def _forget(self, ref: Ref) -> None:
        """Expect nothing at a ref any more; its hold goes unless an entry is there."""
        expected = self._expected.pop(ref)
        if self.known(ref) is None:
            for reservation in expected.entries.reservations:
                self.ledger.drop(reservation.ref)
        self.changed(ref)

    def _enforce(self, metadata: Metadata, reservation: Reservation, when: Written) -> None:
        """Let the ledger hold what is written; an exception costs only this reservation."""
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
        """Let one of too many copies of a reservation count as invalid until it is written anew."""
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
        """Return what became of reservations that are over and have to go."""
        return tuple(
            Ending.of(each, self.ledger, self.clock()) for each in over if not each.is_retained
        )

    def _report_ended(self, reservation: Reservation, text: str) -> None:
        """Report what became of a reservation that is not written any more, before its drop.

        Args:
            text: what was written there.
        """
        ref = reservation.ref
        if not self.ledger.is_written_twice(ref):  # Else it is being moved.
            with quarantined("history", ref):
                now, since = self.clock(), self.ledger.since(ref)
                if (held := self.ledger.get(ref)) is not None and held.recurrence is not None:
                    created_at = reservation.created_at or held.created_at  # It may hold earlier.
                    since = min(now, max(created_at, held.starts_at or 0.0))
                    now = min(now, held.expires_at or now)
                claimed_at = self._claimed_at(ref)
                ending = Ending.of(reservation, self.ledger, now, since, claimed_at)
                self.ended(replace(ending, text=text))

    def occurrence_over(self, ref: Ref) -> None:
        """Report what became of an occurrence that is over, before the next one is held."""
        known, held = self.known(ref), self.ledger.get(ref)
        if known is None or held is None or held.recurrence is None:
            return
        if not held.recurrence.is_suspended:
            self._report_ended(held, known.text)

    def recall_occurrence(self, ref: Ref, said: LastSaid | None) -> None:
        """Report an occurrence that ended while no Reserver ran; `said` is its last status."""
        known, held = self.known(ref), self.ledger.get(ref)
        ending = ending_of(held, said, self.clock()) if held and said else None
        if known is not None and ending is not None:
            with quarantined("history", ref):
                self.ended(replace(ending, text=known.text))

    def _claimed_at(self, ref: Ref) -> Mapping[str, float]:  # noqa: ARG002 - most do not know
        """Return when slots were claimed, by UID, as far as that is noted."""
        return {}

    def labels(self, ref: Ref) -> Mapping[str, str]:  # noqa: ARG002 - most have none
        """Return the labels of a reservation."""
        return {}

    def _is_over(self, reservation: Reservation) -> bool:
        """Return whether the ledger has this reservation at the ref, and it is over."""
        held = self.ledger.get(reservation.ref)
        if held is None or (held.record, series_digest(held.digest)) != (
            reservation.record,
            series_digest(reservation.digest),
        ):
            return False
        return self.ledger.is_over(reservation.ref)


def when_written(now: Metadata, before: Metadata | None, *, listed: bool) -> Written:
    """Return when the changes of an object were written, as far as known.

    One that a list shows may have been written more than once since it was read before.
    """
    revision = now.revision
    if not revision:
        return ANY_TIME
    if not listed:
        return Written(revision, revision)
    return Written(before.revision + 1 if before else 0, revision)
