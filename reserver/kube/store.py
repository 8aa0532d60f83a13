"""The view of the store: what ConfigMaps say into the ledger, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import structlog

from reserver.errors import InvalidInput
from reserver.kube.awaited import Awaited
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import ANY_TIME, NOT_YET, Phase, Ref, Reservation, Written
from reserver.wire import companion, edits
from reserver.wire.edits import Edit
from reserver.wire.objects import ConfigMapObject, Metadata
from reserver.wire.store import Entries, Problem, read_key

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

    def put(self, configmap: ConfigMapObject, *, listed: bool = False) -> None:
        """Take a ConfigMap as it is now, shown by a watch or, after changes were missed, a list."""
        self._ledger.advance(self._clock())
        metadata = configmap.metadata
        name = (metadata.namespace, metadata.name)
        known_document = self._documents.get(name)
        before = known_document.metadata if known_document else None
        when = written(metadata, before, listed=listed)
        document = self._documents.setdefault(name, _Document(metadata))
        document.metadata = metadata
        data = configmap.data or {}
        for key in document.keys.keys() - data.keys():
            self._exchange(document, key, None, when)
        for key, text in data.items():
            known = document.keys.get(key)
            if known is None or known.text != text:
                ref = Ref(metadata.namespace, metadata.name, key)
                entries = read_key(ref, text, self._clock())
                self._exchange(document, key, _Key(text, entries), when)
        for ref, expected in tuple(self._expected.items()):
            if (ref.namespace, ref.configmap) == name and _is_past(expected, metadata):
                self._forget(ref)
        self._awaited.check()

    def drop(self, name: Name) -> None:
        """Forget a ConfigMap that is gone or is no store any more."""
        document = self._documents.pop(name, None)
        if document is not None:
            for key in list(document.keys):
                self._exchange(document, key, None, ANY_TIME)
        for ref, expected in tuple(self._expected.items()):
            if (ref.namespace, ref.configmap) == name and expected.revision is not None:
                self._forget(ref)
        self._awaited.check()

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
        if document is not None and _is_past(expected, document.metadata):
            self._forget(ref)  # It came and went unseen.

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

    def _exchange(self, document: _Document, name: str, key: _Key | None, when: Written) -> None:
        before = document.keys.pop(name, None)
        document.size -= _size(name, before)
        ref = Ref(document.metadata.namespace, document.metadata.name, name)
        self._touched(ref)
        expected = self._expected.pop(ref, None)
        if before is None and expected is not None:
            # The same, as a rule, and then the ledger is told when it was written.
            for reservation in expected.key.entries.reservations:
                if key is None or reservation not in key.entries.reservations:
                    self._ledger.drop(reservation.ref)
        old = {r.ref: r for r in before.entries.reservations} if before else {}
        new = {r.ref: r for r in key.entries.reservations} if key else {}
        for ref in old.keys() - new.keys():
            self._ledger.drop(ref)
        for reservation in new.values():
            if reservation != old.get(reservation.ref):
                self._ledger.put(reservation, when)
                self._warn_if_past(document.metadata, reservation)
        if key is not None:
            document.keys[name] = key
            document.size += _size(name, key)
            for problem in key.entries.problems:
                self._report(document.metadata, problem)

    def _warn_if_past(self, metadata: Metadata, reservation: Reservation) -> None:
        if self._ledger.phase(reservation.ref) is Phase.EXPIRED:
            field_ = "expire" if reservation.ref.item else "expiresAt"
            remedy = "write a moment in the future; the cleaner removes this entry"
            error = InvalidInput(field_, "lies in the past, so nothing is held", remedy)
            self._report(metadata, Problem(reservation.ref, error))


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
