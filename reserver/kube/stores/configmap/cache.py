"""The view of the store: what ConfigMaps say into the ledger, entry by entry."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
import structlog

from reserver.errors import Fault, InvalidInput
from reserver.kube.watch.awaited import Awaited
from reserver.pacer import Steps
from reserver.quarantine import quarantined, take_note
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Phase, Ref, Reservation, Written
from reserver.wire.k8s.objects import ConfigMapObject, Metadata
from reserver.wire.limits import MOST_KEYS
from reserver.wire.spec import edits
from reserver.wire.spec.edits import Edit
from reserver.wire.spec.entries import MOST_PROBLEMS, Entries, Problem, reading_key
from reserver.wire.status import companion

log = structlog.get_logger(__name__)

NO_COMPANION = f"!{companion.LABEL}"
"""Selects all but the ConfigMaps that we write ourselves (`kube.status`)."""

LABEL_KEY, LABEL_VALUE = "reserver.io/store", "true"

LABEL = f"{LABEL_KEY}={LABEL_VALUE},{NO_COMPANION}"
"""Selects the ConfigMaps that are read without being named."""

Name = tuple[str, str]
"""Namespace and name of a ConfigMap."""


@dataclass(slots=True)
class _Key:
    """One data key as it was last read."""

    text: str
    entries: Entries


@dataclass(slots=True)
class _Document:
    """One ConfigMap as it was last read."""

    metadata: Metadata
    keys: dict[str, _Key] = field(default_factory=dict)
    size: int = 0
    """What keys and values take, in bytes."""


@dataclass(slots=True)
class _Expected:
    """A data key that is being written and that no watch has shown yet."""

    key: _Key
    revision: int | None = None
    """The resourceVersion that the write made; None until that is known."""
    gone_at: int = 0
    """A resourceVersion at which there was no such ConfigMap, as far as that is known."""


class Store:
    """What all store ConfigMaps say, and where.

    Only keys whose value has changed are read again, and only entries that say something else
    touch the ledger.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], float],
        report: Callable[[Metadata, Problem], None],
        touched: Callable[[Ref], None] = lambda _: None,
    ) -> None:
        """Keep a ledger up to date.

        Args:
            ledger: where reservations go.
            clock: unix seconds.
            report: is told of each entry that is not enforced, with its ConfigMap.
            touched: is told of each key that is written anew or removed.
        """
        self._ledger = ledger
        self._clock = clock
        self._report = report
        self._touched = touched
        self._documents: dict[Name, _Document] = {}
        self._expected: dict[Ref, _Expected] = {}
        self._awaited = Awaited()
        self._taking: set[Name] = set()

    def put(self, configmap: ConfigMapObject, *, listed: bool = False) -> Steps:
        """Take a ConfigMap as it is now, shown by a watch or, after changes were missed, a list.

        Other work may come between the entries. What is new is taken before what is gone is
        dropped, so that what moves from one key to another is held all the time. Up to which
        resourceVersion the ConfigMap is known changes last.
        """
        self._ledger.advance(self._clock())
        metadata = configmap.metadata
        known = self._documents.get((metadata.namespace, metadata.name))
        when = written(metadata, known.metadata if known else None, listed=listed)
        self._taking.add((metadata.namespace, metadata.name))
        yield from _finished(self._put(metadata, configmap.data or {}, when))

    def is_taking(self, name: Name) -> bool:
        """Whether only some of a ConfigMap's keys are known as they are now."""
        return name in self._taking

    def _put(self, metadata: Metadata, data: Mapping[str, str], when: Written) -> Steps:
        name = (metadata.namespace, metadata.name)
        unseen = msgspec.structs.replace(metadata, resource_version="")
        document = self._documents.setdefault(name, _Document(unseen))
        data = self._within(metadata, document.keys, data)
        for key, text in data.items():
            known = document.keys.get(key)
            if known is None or known.text != text:
                entries = yield from self._read(Ref(*name, key), text, known)
                yield from self._exchange(document, key, _Key(text, entries), when)
            yield
        for key in tuple(document.keys.keys() - data.keys()):
            yield from self._exchange(document, key, None, when)
        document.metadata = metadata
        self._taking.discard(name)
        for ref, expected in tuple(self._expected.items()):
            if (ref.namespace, ref.configmap) == name and _is_past(expected, metadata):
                self._forget(ref)
        self._awaited.check()

    def _within(
        self, metadata: Metadata, known: Container[str], data: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return as many keys as are read of one ConfigMap, those first that were read before."""
        if len(data) <= MOST_KEYS:
            return data
        kept = sorted(data, key=lambda key: key not in known)
        remedy = "remove keys that are no reservations, or write several ConfigMaps"
        error = InvalidInput(
            "data", f"{len(data)} keys are too many", f"{MOST_KEYS} are read; {remedy}"
        )
        ref = Ref(metadata.namespace, metadata.name, kept[MOST_KEYS])
        self._report(metadata, Problem(ref, error))
        return {key: data[key] for key in kept[:MOST_KEYS]}

    def drop(self, name: Name, revision: int = 0) -> Steps:
        """Forget a ConfigMap that is gone or is no store any more.

        Args:
            name: of the ConfigMap.
            revision: a resourceVersion at which it was gone; 0 if that is not known.
        """
        yield from _finished(self._drop(name, revision))

    def listed(self, covers: Callable[[Name], bool], revision: int) -> None:
        """Take note that a list of a resourceVersion has shown all of some ConfigMaps."""
        for name in {(ref.namespace, ref.configmap) for ref in self._expected}:
            if covers(name) and name not in self._documents:
                self._is_gone(name, revision)
        self._awaited.check()

    def _is_gone(self, name: Name, revision: int) -> None:
        """Forget what was written into a ConfigMap before it was gone.

        Of a write whose answer is still to come that is known only then.
        """
        for ref, expected in tuple(self._expected.items()):
            if (ref.namespace, ref.configmap) != name:
                continue
            expected.gone_at = max(expected.gone_at, revision)
            if expected.revision is not None and expected.revision <= (revision or math.inf):
                self._forget(ref)

    def _drop(self, name: Name, revision: int) -> Steps:
        document = self._documents.pop(name, None)
        if document is not None:
            for key in tuple(document.keys):
                yield from self._exchange(document, key, None, ANY_TIME)
        self._is_gone(name, revision)
        self._awaited.check()

    def _read(self, ref: Ref, text: str, known: _Key | None) -> Generator[None, None, Entries]:
        """Return what a key says now; what it said before stays where that cannot be told."""
        noted = partial(take_note, "store")
        entries = yield from reading_key(ref, text, self._clock(), noted)
        if not entries.has_faults or known is None:
            return entries
        read = {reservation.ref for reservation in entries.reservations}
        stays = (r for r in known.entries.reservations if r.ref not in read)
        return replace(entries, reservations=(*entries.reservations, *stays))

    def spoiled(self, ref: Ref, fault: Fault) -> None:
        """Take note of an entry that could not be judged; what it holds it holds on.

        It counts as invalid until it is written anew.
        """
        document = self._documents.get((ref.namespace, ref.configmap))
        key = document.keys.get(ref.key) if document else None
        problem = Problem(ref, fault.under(f"[{ref.item}]") if ref.item else fault)
        if document is None or key is None or len(key.entries.problems) >= MOST_PROBLEMS:
            return
        if str(problem) not in map(str, key.entries.problems):
            key.entries = replace(key.entries, problems=(*key.entries.problems, problem))
            self._report(document.metadata, problem)
            self._touched(ref)

    def expect(self, ref: Ref, text: str, entries: Entries) -> None:
        """Let a data key hold before it is written; `written` or `withdraw` has to follow."""
        self._ledger.advance(self._clock())
        self._expected[ref] = _Expected(_Key(text, entries))
        for reservation in entries.reservations:
            self._ledger.put(reservation, NOT_YET)

    def written(self, ref: Ref, revision: int) -> None:
        """Take note that an expected key was written, and at which resourceVersion."""
        expected = self._expected.get(ref)
        if expected is None:
            return  # The watch was faster.
        expected.revision = revision
        document = self._documents.get((ref.namespace, ref.configmap))
        is_gone = document is None and revision <= expected.gone_at
        if is_gone or (document is not None and _is_past(expected, document.metadata)):
            self._forget(ref)  # It came and went unseen.
            self._awaited.check()

    def withdraw(self, ref: Ref) -> None:
        """Take an expected key back: it was not written."""
        if ref in self._expected:
            self._forget(ref)
            self._awaited.check()

    async def shown(self, name: Name, revision: int) -> None:
        """Wait until a ConfigMap has been seen as it was at a resourceVersion, or later."""
        await self._awaited.until(lambda: self._has_shown(name, revision))

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return value and meaning of a data key, written or being written; None without one."""
        document = self._documents.get((ref.namespace, ref.configmap))
        key = document.keys.get(ref.key) if document else None
        if key is None and ref in self._expected:
            key = self._expected[ref].key
        return (key.text, key.entries) if key else None

    async def superseded(self, ref: Ref, text: str) -> None:
        """Wait until something else than this is written at a place, or nothing."""
        await self._awaited.until(lambda: (self.latest(ref) or ("",))[0] != text)

    def size(self, name: Name) -> int:
        """Return what a ConfigMap's keys and values take in bytes, expected ones included."""
        document = self._documents.get(name)
        return (document.size if document else 0) + sum(
            _size(ref.key, expected.key)
            for ref, expected in self._expected.items()
            if (ref.namespace, ref.configmap) == name
        )

    def _forget(self, ref: Ref) -> None:
        expected = self._expected.pop(ref)
        for reservation in expected.key.entries.reservations:
            self._ledger.drop(reservation.ref)
        self._touched(ref)

    def _has_shown(self, name: Name, revision: int) -> bool:
        """Return whether a ConfigMap was seen as it was then, or nothing of it is to be seen."""
        document = self._documents.get(name)
        if document is not None:
            return document.metadata.revision >= revision
        return all((ref.namespace, ref.configmap) != name for ref in self._expected)

    def names(self) -> tuple[Name, ...]:
        """Return the ConfigMaps that are read."""
        return tuple(self._documents)

    def metadata(self, name: Name) -> Metadata | None:
        """Return the metadata of a ConfigMap that is read, None for any other."""
        document = self._documents.get(name)
        return document.metadata if document else None

    def keys(self, name: Name) -> tuple[str, ...]:
        """Return the data keys of a ConfigMap; none if it is not read."""
        document = self._documents.get(name)
        return tuple(document.keys) if document else ()

    def entries(self, ref: Ref) -> Entries | None:
        """Return what one data key says, None when there is none."""
        document = self._documents.get((ref.namespace, ref.configmap))
        key = document.keys.get(ref.key) if document else None
        return key.entries if key else None

    def problems(self) -> Iterator[Problem]:
        """Yield why entries are not enforced."""
        for document in self._documents.values():
            for key in document.keys.values():
                yield from key.entries.problems

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each ConfigMap with the number of its entries that are not enforced."""
        for name, document in self._documents.items():
            entries = [key.entries for key in document.keys.values()]
            yield name, sum(len(entry.problems) + entry.more_problems for entry in entries)

    def due_edit(self, ref: Ref, now: float) -> Edit | None:
        """Return the edit that tidies a data key: remove what is over, write down what it lacks.

        That is until when it lives, and where it is placed.

        Args:
            ref: the key, `item` empty; one that is not read needs none.
            now: unix seconds.
        """
        self._ledger.advance(now)
        document = self._documents.get((ref.namespace, ref.configmap))
        key = document.keys.get(ref.key) if document else None
        if key is None:
            return None
        if any(map(self._is_over, key.entries.reservations)):
            if key.entries.reservations[0].ref.item:
                return edits.remove(ref, key.text, self._is_over)
            return Edit(ref, key.text, None, "over")
        written = next(iter(key.entries.reservations), None)
        if written is None or written.ref.item:
            return None
        placed = self._ledger.placed(written)
        if key.entries.unstamped or placed != written.placed:
            return edits.complete(ref, key.text, written, placed)
        return None

    def _is_over(self, reservation: Reservation) -> bool:
        known = self._ledger.get(reservation.ref)
        is_known = known is not None and known.identity == reservation.identity
        return is_known and self._ledger.is_over(reservation.ref)

    def _exchange(self, document: _Document, name: str, key: _Key | None, when: Written) -> Steps:
        before = document.keys.pop(name, None)
        place = Ref(document.metadata.namespace, document.metadata.name, name)
        document.size += _size(name, key) - _size(name, before)
        if key is not None:
            document.keys[name] = key
        self._touched(place)
        expected = self._expected.pop(place, None)
        old = {r.ref: r for r in before.entries.reservations} if before else {}
        # The same, as a rule, and then the ledger is told when it was written.
        promised = expected.key.entries.reservations if expected and not before else ()
        stale = {r.ref: r for r in promised}
        new = {r.ref: r for r in key.entries.reservations} if key else {}
        for reservation in new.values():
            if reservation != old.get(reservation.ref):
                with quarantined("ledger", reservation.ref, partial(self.spoiled, reservation.ref)):
                    if stale.get(reservation.ref, reservation) != reservation:
                        self._ledger.drop(reservation.ref)
                    self._ledger.put(reservation, when)
                    self._warn_if_past(document.metadata, reservation)
                yield
        for ref in (old.keys() | stale.keys()) - new.keys():
            self._ledger.drop(ref)
            yield
        for problem in key.entries.problems if key else ():
            self._report(document.metadata, problem)

    def _warn_if_past(self, metadata: Metadata, reservation: Reservation) -> None:
        if self._ledger.phase(reservation.ref) is Phase.EXPIRED:
            field_ = "expire" if reservation.ref.item else "expiresAt"
            remedy = "write a moment in the future; the cleaner removes this entry"
            error = InvalidInput(field_, "lies in the past, so nothing is held", remedy)
            self._report(metadata, Problem(reservation.ref, error))


def _finished(steps: Steps) -> Steps:
    """Go through steps to their end, also if nobody goes on: else half a ConfigMap was taken."""
    for _ in steps:
        try:
            yield
        except GeneratorExit:
            deque(steps, maxlen=0)
            raise


def _size(name: str, key: _Key | None) -> int:
    return len(name.encode()) + len(key.text.encode()) if key else 0


def _is_past(expected: _Expected, metadata: Metadata) -> bool:
    """Whether a ConfigMap that does not show an expected key should."""
    return expected.revision is not None and metadata.revision >= expected.revision


def written(now: Metadata, before: Metadata | None, *, listed: bool) -> Written:
    """Return when what is new in an object was written, as far as that can be told.

    Args:
        now: its metadata.
        before: as it was last read, None if it was not.
        listed: a list shows it, so that it may have been written more than once.
    """
    if not now.revision:
        return ANY_TIME
    if not listed:
        return Written(now.revision, now.revision)
    return Written(before.revision + 1 if before else 0, now.revision)
