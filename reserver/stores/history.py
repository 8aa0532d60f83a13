"""Reads past events at the start, as far back as the API server keeps them.

A killed Reserver may have left an entry whose owner claimed it and was deleted since. No list shows
this claim, nor the order in which entries were written.
The API server's watch caches do, for a minute and more (`eventFreshDuration` in apiserver's
pkg/storage/cacher/watch_cache.go), unless it was restarted meanwhile.

An entry whose past is unknown keeps its hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import structlog

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import WatchEvent
from reserver.k8s.watch.collection import Pages, WatchedCollection, changes, latest
from reserver.reservations.recovery import RecoveredClaims
from reserver.stores.recovery import BOUND, PodPast, StorePast

log = structlog.get_logger(__name__)

_FARTHEST = 50_000
"""Most resourceVersions to look back: over a minute of the heartbeats of 5,000 nodes."""

_YOUNG = 50
"""A cluster with at most this resourceVersion is new, so its past is not read."""

_ENDLESS = 2**63
_MOST_TRIES = 7

T = TypeVar("T")


class _Selected(NamedTuple):
    """A part of a collection."""

    path: str
    selector: Mapping[str, str]


class OptionalCollection(WatchedCollection, Protocol):
    """A collection that the API server may not serve."""

    @property
    def absent(self) -> bool:
        """Whether the API server does not serve the collection."""


class HistoryReader:
    """Reads the events before the start of the watches, for a ledger's `past`."""

    def __init__(
        self,
        client: ApiClient,
        past: RecoveredClaims,
        pods: WatchedCollection,
        stores: Sequence[OptionalCollection],
        home: str,
    ) -> None:
        """Read through a client; `home` is Reserver's own namespace."""
        self._client = client
        self._past = past
        self._bound = _Selected(pods.path, {**pods.selector, "fieldSelector": BOUND})
        self._stores = stores
        self._home = home

    async def read(self) -> None:
        """Read the past into the ledger, after all lists and after `Statuses.recall`.

        A part that cannot be read stays unknown, and is logged.
        """
        bindings = PodPast()
        read = await _patiently(self._bound, lambda: self._read(self._bound, bindings))
        recall = self._past.recall_binding
        unsure, pacer = [], Pacer()
        for pod, exact in bindings.bindings():
            with quarantined("history", pod.name):
                if not recall(pod, exact=exact):
                    unsure.append((pod, exact))
            await pacer.give_way()
        recorded = self._past.unsure_since()
        since = min((*(pod.revision - 1 for pod, _ in unsure), recorded or _ENDLESS))
        if since < _ENDLESS:
            stores = (store for store in self._stores if not store.absent)
            await asyncio.gather(*(self._date_entries(store, since) for store in stores))
            for pod, exact in unsure:
                with quarantined("history", pod.name):
                    recall(pod, exact=exact)
                await pacer.give_way()
        self._past.end()
        log.info("history read", resource_versions_back=len(read or ()), unsure=len(unsure))

    async def _date_entries(self, store: OptionalCollection, since: int) -> None:
        """Pass the times of writes after a resourceVersion to the ledger."""
        dates = await _patiently(store, lambda: self._read_entries(store, since))
        pacer = Pacer()
        for ref, identity, when in dates.entries() if dates else ():
            with quarantined("history", ref):
                self._past.narrow(ref, identity, when)
            await pacer.give_way()

    async def _read_entries(self, store: OptionalCollection, since: int) -> StorePast:
        """Return the changes of a store since a resourceVersion, or as far back as events go.

        The store is listed as it was before them, unless etcd has compacted that resourceVersion
        (it does so every five minutes).

        Raises:
            ApiError: the API server refused, or did not answer.
            InvalidInput: the answer is malformed.
        """
        past = StorePast(self._home)
        read = await self._read(store, past, since)
        if not read:
            return past
        try:
            async for item in self._listed(store, read.start):
                with quarantined("history", "an object"), suppress(InvalidInput):
                    past.take_earlier(item)
        except ApiError as exc:
            if not exc.is_forgotten:
                raise
        return past

    async def _listed(self, store: OptionalCollection, at: int) -> AsyncIterator[msgspec.Raw]:
        """Yield the objects of a store at a resourceVersion, page by page.

        Raises:
            ApiError: the API server refused, or did not answer; 410 if the version is compacted.
            InvalidInput: the answer is malformed.
        """
        pacer, pages = Pacer(), Pages(self._client, store.path)
        params = {"resourceVersion": str(at), "resourceVersionMatch": "Exact"}
        while params:
            page = await pages.page({**store.selector, **params})
            for item in page.items or ():
                yield item
                await pacer.give_way()
            token = page.metadata.continue_
            params = {"continue": token} if token else {}

    async def _read(
        self, collection: WatchedCollection, past: PodPast | StorePast, since: int = 0
    ) -> range:
        """Read the changes of a collection since a resourceVersion, or as far back as events go.

        Return the resourceVersions that were read. Without `since` read up to `_FARTHEST`.

        Raises:
            ApiError: the API server refused, or did not answer.
            InvalidInput: the answer is malformed.
        """
        now = await latest(self._client, collection)
        back = now - since if since else min(_FARTHEST, now - 1) if now > _YOUNG else 0
        while back > 0:
            past.begin_again()  # The try before may have ended halfway.
            if await self._reach(collection, now - back, now, past):
                return range(now - back, now)
            back = back * 3 // 4
        return range(0)

    async def _reach(
        self, collection: WatchedCollection, since: int, until: int, consumer: PodPast | StorePast
    ) -> bool:
        """Read the changes between two resourceVersions; return False if `since` is compacted.

        Raises:
            ApiError: the API server refused, or did not answer.
            InvalidInput: the answer is malformed.
        """
        try:
            async for _, event in changes(self._client, collection, since, until):
                _take(consumer, event)
        except ApiError as exc:
            if exc.is_forgotten:
                return False
            raise
        return True


def _take(consumer: PodPast | StorePast, event: WatchEvent) -> None:
    """Pass an event to a consumer; the regular watch reports malformed objects."""
    with quarantined("history", "an event"), suppress(InvalidInput):
        consumer.take(event)


async def _patiently(collection: WatchedCollection, read: Callable[[], Awaitable[T]]) -> T | None:
    """Return the result of `read`, repeated while the API server is away; None if it fails."""
    backoff = Backoff(0.4, 5.0)
    for _ in range(_MOST_TRIES):
        why, is_definite = "a fault", True
        with quarantined("history", collection.path):
            try:
                return await read()
            except (ApiError, InvalidInput) as exc:
                why, is_definite = str(exc), not isinstance(exc, ApiError) or exc.is_definite
        if is_definite:
            break
        await backoff.sleep()
    log.warning("history not known", collection=collection.path, why=why)
    return None
