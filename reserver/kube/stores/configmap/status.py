"""The acknowledgement: beside each store ConfigMap a companion that says what became of its keys.

It follows the ledger and is in nobody's way: a key says Active only after the hold is in force, and
enforcement does not wait for it to say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import structlog

from reserver.errors import ApiError, Fault, InvalidInput
from reserver.kube.api.client import ApiClient
from reserver.kube.stores.cache import Name
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.companion import Companion, NotOurs
from reserver.kube.stores.room import Room
from reserver.pacer import Pacer
from reserver.quarantine import quarantined
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Phase, Ref, Reservation
from reserver.reservations.status import Shortages, Status
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import Metadata
from reserver.wire.status.companion import Changes
from reserver.wire.status.configmap import admitted_items, newly_unbacked, recorded_claims, show

log = structlog.get_logger(__name__)

PASS_EVERY_S = 0.5
"""How long a change waits at most before it is written, in seconds."""

Warn = Callable[[Metadata, str, str], None]
"""Takes a ConfigMap, a reason and a message, and has a Warning event written."""


class StatusWriter:
    """Keeps the companions of all stores up to date.

    Attributes:
        writes: how many writes were made.
        has_recalled: set once all companions have been read that there were.
    """

    def __init__(
        self,
        client: ApiClient,
        warn: Warn,
        clock: Callable[[], float],
        noticed: Callable[[Ref], None] = lambda _: None,
    ) -> None:
        """Write what becomes of entries.

        Args:
            client: to write through.
            warn: has a Warning event written.
            clock: unix seconds.
            noticed: is told of each hold that may not be backed any more, or again.
        """
        self._client = client
        self._warn = warn
        self._noticed = noticed
        self._clock = clock
        self._touched: set[Ref] = set()
        self._companions: dict[Name, Companion] = {}
        self._room = Room(self._room_changed)
        self.writes = 0
        self.has_recalled = asyncio.Event()

    def touched(self, ref: Ref) -> None:
        """Take note that the status of a key or of one of its items may have changed."""
        self._touched.add(ref._replace(item=""))

    async def run(self, state: State, store: ConfigMapCache) -> None:
        """Write until cancelled."""
        while True:
            with quarantined("pass", "status"):
                await self.write(state, store)
            await asyncio.sleep(PASS_EVERY_S)

    async def recall(self, store: ConfigMapCache, ledger: Ledger) -> None:
        """Let the ledger know what companions say of before; who cannot be read is read later."""
        for name in store.names():
            companion = self._companions.setdefault(name, Companion(self._client, name))
            metadata = store.metadata(name)
            if metadata is not None:
                companion.belongs_to(metadata.uid)
            try:
                if await companion.read_if_due(self._clock()):
                    companion.touched |= {*store.keys(name), *companion.said}
                    _recall(companion, ledger)
            except (ApiError, InvalidInput, NotOurs) as exc:
                companion.failed(exc, self._clock())

    async def write(self, state: State, store: ConfigMapCache) -> None:
        """Write what has changed since the last time; what cannot be written is tried later."""
        self._room.look(state, self._clock())
        for name in store.names():
            if name not in self._companions:
                self._companions[name] = Companion(self._client, name)
        touched, self._touched = self._touched, set()
        pacer = Pacer()
        for ref in touched:
            await pacer.give_way()
            companion = self._companions.get((ref.namespace, ref.configmap))
            if companion is not None:  # Else the store came and went before anything was said.
                companion.touched.add(ref.key)
        for companion in tuple(self._companions.values()):
            seen = _seen(store.metadata(companion.store), state.ledger)
            # One write for all keys that were written together.
            if companion.is_due(seen, self._clock()) and not store.is_taking(companion.store):
                await self._try(companion, state, store)
        self.has_recalled.set()

    def _room_changed(self, ref: Ref) -> None:
        self.touched(ref)
        self._noticed(ref)

    async def _try(self, companion: Companion, state: State, store: ConfigMapCache) -> None:
        def failed(fault: Fault) -> None:
            companion.failed(fault, self._clock())

        with quarantined("companion", "/".join(companion.store), failed):
            try:
                await self._update(companion, state, store)
            except (ApiError, InvalidInput) as exc:
                news = companion.failed(exc, self._clock())
                metadata = store.metadata(companion.store)
                if news and metadata is not None and isinstance(exc, ApiError) and exc.is_definite:
                    self._warn(
                        metadata, "StatusNotWritten", f"its status cannot be written: {news}"
                    )
            except NotOurs as exc:
                companion.failed(exc, self._clock())
                if store.metadata(companion.store) is None:
                    del self._companions[companion.store]
            else:
                companion.succeeded()

    async def _update(self, companion: Companion, state: State, store: ConfigMapCache) -> None:
        metadata = store.metadata(companion.store)
        if metadata is not None:
            companion.belongs_to(metadata.uid)
        keys, companion.touched = companion.touched, set()
        if await companion.read_if_due(self._clock()):
            keys |= {*store.keys(companion.store), *companion.said}
            _recall(companion, state.ledger)
        seen = _seen(metadata, state.ledger)
        wanted = await self._statuses(companion, keys | companion.left_out, state, store)
        async for before, changes in companion.write(metadata, wanted, seen):
            self.writes += 1
            if metadata is not None:
                # As wanted, for where there was no room the messages are not in what was written.
                full = {key: wanted.get(key, text) for key, text in changes.items()}
                self._report(metadata, before, full)
        if metadata is None:
            del self._companions[companion.store]

    async def _statuses(
        self, companion: Companion, keys: set[str], state: State, store: ConfigMapCache
    ) -> Changes:
        """Return what a companion should say of some keys; of each as it is at one instant."""
        wanted: dict[str, str | None] = {}
        pacer = Pacer()
        shortages = self._room.look(state, self._clock())  # Much may have come since the last look.
        for key in keys:
            ref = Ref(*companion.store, key)
            entries = store.entries(ref)
            if entries is None:
                wanted[key] = None
                continue
            statuses: dict[Ref, Status] = {}
            for reservation in entries.reservations:
                spoil = partial(store.spoiled, reservation.ref)
                with quarantined("status", reservation.ref, spoil):
                    statuses[reservation.ref] = shortages.status(reservation, state.ledger)
                if await pacer.give_way():
                    state.ledger.advance(self._clock())
                    shortages = Shortages.of(state.snapshot)
            with quarantined("status", ref, partial(store.spoiled, ref)):
                judged = store.entries(ref) or entries
                wanted[key] = show(judged, partial(_status_of, statuses))
        return wanted

    def _report(self, metadata: Metadata, before: Changes, after: Changes) -> None:
        """Tell of each hold that is not backed and was not said to be so before."""
        warnings = [
            (
                "NodeNotFound" if entry.phase == Phase.FAILED else "NotBacked",
                f"{key}{f'[{item}]' if item else ''}: {entry.message}",
            )
            for key, text in after.items()
            for item, entry in newly_unbacked(before[key], text)
        ]
        for reason, message in warnings:
            self._warn(metadata, reason, message)
        if warnings:
            name = f"{metadata.namespace}/{metadata.name}"
            first = warnings[0][1]
            log.warning("holds not backed", configmap=name, holds=len(warnings), first=first)


def _status_of(statuses: Mapping[Ref, Status], reservation: Reservation) -> Status | None:
    return statuses.get(reservation.ref)


def _seen(metadata: Metadata | None, ledger: Ledger) -> int:
    """Return up to when a store is known, and with it whose the claims are; 0 if they are not."""
    return metadata.revision if metadata and ledger.past.unsure_since() is None else 0


def _recall(companion: Companion, ledger: Ledger) -> None:
    """Let the ledger know what claims were recorded before this process saw any."""
    for key, text in companion.said.items():
        for item, entry in recorded_claims(text):
            claims, landed = entry.claims or {}, entry.landed or {}
            ref = Ref(*companion.store, key, item)
            ledger.past.recall(ref, entry.digest, claims, landed, companion.seen)
        if not ledger.quotas.is_open:
            for item, digest in admitted_items(text):
                ledger.was_admitted(Ref(*companion.store, key, item), digest)
