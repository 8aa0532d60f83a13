"""Writes the status of entries into the companion of each store ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.snapshot import Snapshot
from reserver.errors import ApiError, Fault, InvalidInput
from reserver.k8s.objects.objects import Metadata
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling.state import State
from reserver.stores.cache import Name
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.companion import Companion, NotOurs
from reserver.stores.configmap.companion_codec import Changes
from reserver.stores.configmap.status_codec import (
    admitted_items,
    new_remarks,
    newly_unbacked,
    recorded_claims,
    recorded_idle,
    recorded_occurrences,
    show,
    violated,
)
from reserver.stores.status import MayWrite, Statuses, always

log = structlog.get_logger(__name__)

_AT_ONCE = 32
"""Nodes checked together, unless one reservation is on more nodes."""


@dataclass(eq=False, repr=False)
class CompanionStatuses(Statuses[ConfigMapCache]):
    """Keeps the companions of all store ConfigMaps up to date."""

    name = "status"

    _companions: dict[Name, Companion] = field(default_factory=dict, init=False)

    async def recall(self, ledger: Ledger) -> None:
        """Restore claims and other state from companions; a failed read is repeated later."""
        for name in self.cache.names():
            companion = self._companions.setdefault(name, Companion(self.client, name))
            metadata = self.cache.metadata(name)
            if metadata is not None:
                companion.belongs_to(metadata.uid)
            try:
                if await companion.read_if_due(self.now):
                    companion.changed_keys |= {*self.cache.keys(name), *companion.texts}
                    _recall(companion, ledger, self.cache)
                    _recall_occurrences(companion, ledger, self.cache)
            except (ApiError, InvalidInput, NotOurs) as exc:
                companion.failed(exc, self.now)

    async def write(self, state: State, may_write: MayWrite = always) -> None:
        """Write the statuses that have changed; a failed write is repeated later."""
        pacer = Pacer()
        await pacer.run(self.room.report(state, self.now))
        for name in self.cache.names():
            if name not in self._companions:
                self._companions[name] = Companion(self.client, name)
        for ref in chain.from_iterable(self._due_refs()):
            await pacer.give_way()
            companion = self._companions.get((ref.namespace, ref.configmap))
            if companion is not None:  # Else the store was deleted before its first status.
                companion.changed_keys.add(ref.key)
        for companion in tuple(self._companions.values()):
            seen = _seen(self.cache.metadata(companion.store), state.ledger)
            # One write for all keys of the ConfigMap that were written together.
            if companion.is_due(seen, self.now) and not self.cache.is_taking(companion.store):
                await self._try(companion, state, may_write)

    async def _try(self, companion: Companion, state: State, may_write: MayWrite) -> None:
        def failed(fault: Fault) -> None:
            companion.failed(fault, self.now)

        with quarantined("companion", "/".join(companion.store), failed):
            try:
                await self._update(companion, state, may_write)
            except (ApiError, InvalidInput) as exc:
                news = companion.failed(exc, self.now)
                metadata = self.cache.metadata(companion.store)
                if news and metadata is not None and isinstance(exc, ApiError) and exc.is_definite:
                    self.warn(metadata, "StatusNotWritten", f"its status cannot be written: {news}")
            except NotOurs as exc:
                companion.failed(exc, self.now)
                if self.cache.metadata(companion.store) is None:
                    del self._companions[companion.store]
            else:
                companion.succeeded()

    async def _update(self, companion: Companion, state: State, may_write: MayWrite) -> None:
        metadata = self.cache.metadata(companion.store)
        if metadata is not None:
            companion.belongs_to(metadata.uid)
        keys, companion.changed_keys = companion.changed_keys, set()
        if await companion.read_if_due(self.now):
            keys |= {*self.cache.keys(companion.store), *companion.texts}
            _recall(companion, state.ledger, self.cache)
        seen = _seen(metadata, state.ledger)
        desired = await self._statuses(companion, keys | companion.left_out, state)
        if not await may_write():
            companion.changed_keys |= keys
            return
        async for before, changes in companion.write(metadata, desired, seen):
            self.writes += 1
            if metadata is not None:
                # The desired texts: the written ones may lack messages for want of room.
                full = {key: desired.get(key, text) for key, text in changes.items()}
                await self._report(metadata, before, full)
        if metadata is None:
            del self._companions[companion.store]

    async def _statuses(self, companion: Companion, keys: set[str], state: State) -> Changes:
        """Return the status of keys; each status is consistent at one instant."""
        desired: dict[str, str | None] = {}
        pacer, short = Pacer(), _Short(state.snapshot)
        self.room.look(state, self.now)  # Other work may have run since the last look.
        refs = [Ref(*companion.store, key) for key in keys]
        for index, ref in enumerate(refs):
            key = ref.key
            entries = self.cache.entries(ref)
            if entries is None:
                desired[key] = None
                continue
            statuses: dict[Ref, ReservationState] = {}
            for reservation in entries.reservations:
                on_fault = partial(self.cache.on_fault, reservation.ref)
                with quarantined("status", reservation.ref, on_fault):
                    next_ones = self._nodes(refs[index + 1 : index + 1 + _AT_ONCE])
                    short_nodes = short.nodes(reservation, next_ones)
                    statuses[reservation.ref] = short_nodes.status(reservation, state.ledger)
                if await pacer.give_way():
                    state.ledger.advance(self.now)
                    short.others_ran()
            with quarantined("status", ref, partial(self.cache.on_fault, ref)):
                judged = self.cache.entries(ref) or entries
                desired[key] = show(judged, partial(_status_of, statuses))
        return desired

    def _nodes(self, refs: Iterable[Ref]) -> Iterator[str]:
        """Yield the nodes of the reservations at refs."""
        for ref in refs:
            entries = self.cache.entries(ref)
            for reservation in entries.reservations if entries else ():
                yield from (part.node for part in reservation.parts)

    async def _report(self, metadata: Metadata, before: Changes, after: Changes) -> None:
        """Report new acknowledgements, violations, unbacked holds and remarks, with pauses."""
        pacer = Pacer()
        warnings: list[tuple[str, str]] = []
        remarks: list[tuple[str, str]] = []
        for key, text in after.items():
            if text is not None and before[key] is None:
                self.acknowledged(Ref(metadata.namespace, metadata.name, key))
            for item in violated(before[key], text):
                self.violated(Ref(metadata.namespace, metadata.name, key, item))
            for item, entry in newly_unbacked(before[key], text):
                reason = "NodeNotFound" if entry.phase == Phase.FAILED else "NotBacked"
                warnings.append((reason, f"{key}{f'[{item}]' if item else ''}: {entry.message}"))
            for item, reason, message in new_remarks(before[key], text):
                remarks.append((reason, f"{key}{f'[{item}]' if item else ''}: {message}"))
            await pacer.give_way()
        for reason, message in (*warnings, *remarks):
            self.warn(metadata, reason, message)
            await pacer.give_way()
        if warnings:
            name = f"{metadata.namespace}/{metadata.name}"
            first = warnings[0][1]
            log.warning("holds not backed", configmap=name, holds=len(warnings), first=first)


class _Short:
    """The nodes without room for their holds, computed in groups of `_AT_ONCE` nodes.

    All nodes together would block the event loop; each node alone costs a third of a status.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.others_ran()

    def others_ran(self) -> None:
        """Drop the cached nodes, which other work may have changed."""
        self._looked_at: set[str] = set()
        self._found: ShortNodes | None = None

    def nodes(self, reservation: Reservation, next_ones: Iterable[str]) -> ShortNodes:
        """Return the short nodes among a reservation's nodes and the next ones."""
        own = {part.node for part in reservation.parts}
        if self._found is None or not own <= self._looked_at:
            self._looked_at = own.union(islice(next_ones, _AT_ONCE))
            self._found = ShortNodes.of(self._snapshot, tuple(self._looked_at))
        return self._found


def _status_of(
    statuses: Mapping[Ref, ReservationState], reservation: Reservation
) -> ReservationState | None:
    return statuses.get(reservation.ref)


def _seen(metadata: Metadata | None, ledger: Ledger) -> int:
    """Return the cached version of a store if its claims are certain; else 0."""
    return metadata.revision if metadata and ledger.past.unsure_since() is None else 0


def _recall(companion: Companion, ledger: Ledger, cache: ConfigMapCache) -> None:
    """Restore into the ledger the claims, idle times and admissions of earlier processes."""
    for key, text in companion.texts.items():
        for item, entry in recorded_claims(text):
            claims, landed = entry.recorded()
            ref = Ref(*companion.store, key, item)
            ledger.past.recall(ref, entry.digest, claims, landed, companion.seen)
        for item, digest, since in recorded_idle(text):
            ledger.was_idle(Ref(*companion.store, key, item), digest, since)
        if not ledger.quotas.is_open:
            for item, digest in admitted_items(text):
                ref = Ref(*companion.store, key, item)
                cache.keep(ref, digest)
                entries = cache.entries(ref)
                if entries is not None and entries.ignored:  # They may be part of the digest.
                    digest = entries.reservations[0].digest  # noqa: PLW2901 - as computed here
                ledger.was_admitted(ref, digest)


def _recall_occurrences(companion: Companion, ledger: Ledger, cache: ConfigMapCache) -> None:
    """Add to the history the occurrences that ended after an earlier process wrote their status."""
    for key, text in companion.texts.items():
        for item, digest, last_status in recorded_occurrences(text):
            ref = Ref(*companion.store, key, item)
            reservation = ledger.get(ref)
            if reservation and series_digest(digest) == series_digest(reservation.digest):
                cache.recall_occurrence(ref, last_status)
