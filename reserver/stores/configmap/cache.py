"""The cache of store ConfigMaps, which feeds their entries into the ledger."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import msgspec

from reserver.base.pacer import Steps
from reserver.base.quarantine import quarantined, take_note
from reserver.k8s.objects.objects import CONFIG_MAP, ConfigMapObject, Metadata
from reserver.reservations.reservation import ANY_TIME, Ref, Reservation, Written
from reserver.stores.cache import Cache, Expected, Name, when_written
from reserver.stores.configmap import companion_codec, entry_edits
from reserver.stores.configmap.entries import (
    STORE_LABEL,
    StoreDocument,
    StoreKey,
    read_kept,
    reading_key,
    size_of,
    within_bounds,
)
from reserver.stores.edits import Edit
from reserver.stores.entries import Entries

NO_COMPANION = f"!{companion_codec.LABEL}"
"""Excludes the ConfigMaps that Reserver writes itself (`configmap.status`)."""

LABEL_KEY, LABEL_VALUE = STORE_LABEL, "true"

LABEL = f"{LABEL_KEY}={LABEL_VALUE},{NO_COMPANION}"
"""Selects the labelled store ConfigMaps."""


@dataclass(eq=False, repr=False)
class ConfigMapCache(Cache[StoreKey, Edit]):
    """The entries of all store ConfigMaps; a ref is a data key.

    Attributes:
        assumed: called with the metadata of a ConfigMap and each new reservation whose owner has
            the namespace of the ConfigMap by default.
    """

    event_kind = CONFIG_MAP

    assumed: Callable[[Metadata, Ref], None] = lambda *_: None
    _documents: dict[Name, StoreDocument] = field(default_factory=dict, init=False)
    _taking: dict[Name, set[Ref]] = field(default_factory=dict, init=False)

    def put(self, configmap: ConfigMapObject, *, listed: bool = False) -> Steps:
        """Process the present ConfigMap, from a watch or, after missed changes, from a list.

        Other work may run between the entries. New keys are read before removed keys are dropped,
        so that a reservation that moves from one key to another is held all the time. The cached
        resourceVersion of the ConfigMap changes last.
        """
        self.ledger.advance(self.clock())
        metadata = configmap.metadata
        name = (metadata.namespace, metadata.name)
        when = when_written(metadata, self.metadata(name), listed=listed)
        self._taking.setdefault(name, set())
        yield from _finished(self._put(metadata, configmap.data or {}, when))

    def is_taking(self, name: Name) -> bool:
        """Whether a new version of a ConfigMap has been processed only in part."""
        return name in self._taking

    def _put(self, metadata: Metadata, data: Mapping[str, str], when: Written) -> Steps:
        name = (metadata.namespace, metadata.name)
        former = self.metadata(name)
        if former is not None and former.uid != metadata.uid:
            # Deleted while no watch was running: its successor inherits nothing.
            yield from self._drop(name, former.revision)
        unseen = msgspec.structs.replace(metadata, resource_version="")
        document = self._documents.setdefault(name, StoreDocument(unseen))
        data, problem = within_bounds(metadata, data, document.keys)
        if problem is not None:
            self.report(metadata, problem)
        for key, text in data.items():
            known = document.keys.get(key)
            if known is None or known.text != text:
                entries = yield from self._read(Ref(*name, key), text, known)
                yield from self._exchange(document, key, StoreKey(text, entries), when)
            yield
        for key in tuple(document.keys.keys() - data.keys()):
            yield from self._exchange(document, key, None, when)
            yield
        document.metadata = metadata
        for ref in self._taking.pop(name, ()):
            self.changed(ref)
        for ref, expected in self._expected_in(name):
            if _is_past(expected, metadata):
                self._forget(ref)
        self._awaited.check()

    def drop(self, name: Name, revision: int = 0) -> Steps:
        """Drop a ConfigMap that was deleted, or is no store any more; `revision` 0 if unknown."""
        yield from _finished(self._drop(name, revision))

    def listed(self, covers: Callable[[Name], bool], revision: int) -> None:
        """Record that a list at a resourceVersion has shown all ConfigMaps that it `covers`."""
        for name in {(ref.namespace, ref.configmap) for ref in self._expected}:
            if covers(name) and name not in self._documents:
                self._is_gone(name, revision)
        self._awaited.check()

    def _drop(self, name: Name, revision: int) -> Steps:
        document = self._documents.pop(name, None)
        if document is not None:
            for key in tuple(document.keys):
                yield from self._exchange(document, key, None, ANY_TIME)
                yield
        self._is_gone(name, revision)
        self._awaited.check()

    def _is_gone(self, name: Name, revision: int) -> None:
        """Drop the pending writes into a ConfigMap that happened before it was deleted.

        For a write without an answer so far, `written` decides this later.
        """
        for ref, expected in self._expected_in(name):
            expected.gone_at = max(expected.gone_at, revision)
            if expected.revision is not None and expected.revision <= (revision or math.inf):
                self._forget(ref)

    def _expected_in(self, name: Name) -> list[tuple[Ref, Expected]]:
        every = self._expected.items()
        return [each for each in every if (each[0].namespace, each[0].configmap) == name]

    def keep(self, ref: Ref, digest: str) -> None:
        """Enforce a refused key that was in force: another version has other bounds or fields.

        Args:
            ref: the ref of the key; items of lists are ignored, as they have no such bounds.
            digest: the digest of the reservation that was in force.
        """
        known, metadata = self.known(ref), self.subject(ref)
        if known is None or metadata is None or ref.item or known.entries.reservations:
            return
        with quarantined("store", ref):
            entries = read_kept(ref, known.text, self.clock(), digest)
            if entries is not None and known.entries.problems:
                beyond = "" if entries.ignored else str(known.entries.problems[0].error)
                known.entries = replace(entries, beyond=beyond)
                when = when_written(metadata, None, listed=True)
                self._enforce(metadata, entries.reservations[0], when)
                self.changed(ref)

    def _read(self, ref: Ref, text: str, known: StoreKey | None) -> Generator[None, None, Entries]:
        """Return the entries of a key; earlier entries stay where reading raised an exception."""
        noted = partial(take_note, "store")
        ignored = known.entries.ignored if known is not None else ""
        entries = yield from reading_key(ref, text, self.clock(), noted, ignored)
        if not entries.has_faults or known is None:
            return entries
        read = {reservation.ref for reservation in entries.reservations}
        stays = (r for r in known.entries.reservations if r.ref not in read)
        return replace(entries, reservations=(*entries.reservations, *stays))

    def _exchange(
        self, document: StoreDocument, name: str, key: StoreKey | None, when: Written
    ) -> Steps:
        before = document.exchange(name, key)
        ref = Ref(document.metadata.namespace, document.metadata.name, name)
        self.changed(ref)
        expected = self._expected.pop(ref, None)
        old = {r.ref: r for r in before.entries.reservations} if before else {}
        # Usually equal to the new entries, and then the ledger takes only the time of the write.
        promised = expected.entries.reservations if expected and not before else ()
        stale = {r.ref: r for r in promised}
        new = {r.ref: r for r in key.entries.reservations} if key else {}
        here = document.metadata.namespace
        is_assumed = key is not None and here not in key.text
        for ref, reservation in new.items():
            if reservation != old.get(ref):
                with quarantined("ledger", ref, partial(self.on_fault, ref)):
                    if stale.get(ref, reservation) != reservation:
                        self.ledger.drop(ref)
                self._enforce(document.metadata, reservation, when)
                if is_assumed and _has_owner_of(here, reservation):
                    self.assumed(document.metadata, ref)
                yield
        for ref in (old.keys() | stale.keys()) - new.keys():
            if ref in old:
                self._report_ended(old[ref], before.text if before and not ref.item else "")
            self.ledger.drop(ref)
            yield
        for problem in key.entries.problems if key else ():
            self.report(document.metadata, problem)

    def written(self, ref: Ref, made: Metadata) -> None:
        """Record that a pending key was written; `made` is the metadata of the result."""
        expected = self._expected.get(ref)
        if expected is None:
            return  # The watch has shown it already.
        expected.revision = made.revision
        metadata = self.subject(ref)
        is_gone = metadata is None and made.revision <= expected.gone_at
        if is_gone or (metadata is not None and _is_past(expected, metadata)):
            self._forget(ref)  # Created and removed between two events of the watch.
            self._awaited.check()

    async def shown(self, name: Name, revision: int) -> None:
        """Wait until the watch has shown a ConfigMap at a resourceVersion or later."""
        await self.until(lambda: self._has_shown(name, revision))

    def _has_shown(self, name: Name, revision: int) -> bool:
        """Return whether the cache has this resourceVersion, or the ConfigMap is gone."""
        metadata = self.metadata(name)
        return metadata.revision >= revision if metadata else not self._expected_in(name)

    def size(self, name: Name) -> int:
        """Return the bytes of a ConfigMap's keys and values, including pending writes."""
        document = self._documents.get(name)
        expected = (size_of(ref.key, each.text) for ref, each in self._expected_in(name))
        return (document.size if document else 0) + sum(expected)

    def names(self) -> tuple[Name, ...]:
        """Return the names of the cached ConfigMaps."""
        return tuple(self._documents)

    def metadata(self, name: Name) -> Metadata | None:
        """Return the metadata of a cached ConfigMap; None for any other."""
        document = self._documents.get(name)
        return document.metadata if document else None

    def keys(self, name: Name) -> tuple[str, ...]:
        """Return the data keys of a ConfigMap; empty if it is not cached."""
        document = self._documents.get(name)
        return tuple(document.keys) if document else ()

    def known(self, ref: Ref) -> StoreKey | None:
        """Return a cached data key; None if it is absent."""
        document = self._documents.get((ref.namespace, ref.configmap))
        return document.keys.get(ref.key) if document else None

    def all_known(self) -> Iterator[StoreKey]:
        """Yield all cached data keys."""
        for document in self._documents.values():
            yield from document.keys.values()

    def subject(self, ref: Ref) -> Metadata | None:
        """Return the metadata of the ConfigMap of a ref."""
        return self.metadata((ref.namespace, ref.configmap))

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each ConfigMap with the number of its entries that are not enforced."""
        for name, document in self._documents.items():
            yield name, document.problem_count

    def tidied(self, ref: Ref, known: StoreKey) -> Edit | None:
        """Return the edit that removes ended entries, or adds missing fields; None if neither.

        These fields are expiresAt and placements. The edit waits until the whole ConfigMap is read:
        otherwise each of thousands of entries would cause a search of all entries.
        """
        put_off = self._taking.get((ref.namespace, ref.configmap))
        if put_off is not None:
            put_off.add(ref)
            return None
        written = next(iter(known.entries.reservations), None)
        if written is None:
            return None
        are_over = filter(self._is_over, known.entries.reservations)
        over = tuple(islice(are_over, entry_edits.MOST_REMOVED))
        if endings := self._endings(over):
            if written.ref.item:
                edit = entry_edits.remove(ref, known.text, over)
                return edit and replace(edit, endings=endings)
            return Edit(ref, known.text, None, "over", endings)
        placed = self.ledger.placed(written)
        if not written.ref.item and (known.entries.unstamped or placed != written.placed):
            return entry_edits.complete(ref, known.text, written, placed)
        return None


def _finished(steps: Steps) -> Steps:
    """Run all steps, even if the caller stops early: a ConfigMap must not stay half processed."""
    for _ in steps:
        try:
            yield
        except GeneratorExit:
            deque(steps, maxlen=0)
            raise


def _has_owner_of(namespace: str, reservation: Reservation) -> bool:
    namespaces = {owner.namespace for owner in reservation.owners}
    return namespace in namespaces | {rule.namespace for rule in reservation.rules}


def _is_past(expected: Expected, metadata: Metadata) -> bool:
    """Return whether a ConfigMap without a pending key is newer than the write of the key."""
    return expected.revision is not None and metadata.revision >= expected.revision
