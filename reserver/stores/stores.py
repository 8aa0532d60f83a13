"""All stores behind one interface, which finds the store of a ref; and their watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Any

from reserver.base.pacer import Steps
from reserver.errors import Fault
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ConfigMapObject, Metadata, ObjectKind
from reserver.k8s.watch.collection import CRDS, NAMESPACES, Enclosing
from reserver.k8s.watch.object_view import UNKNOWN, ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores import quota_codec
from reserver.stores.cache import Cache, Name
from reserver.stores.configmap.cache import LABEL, NO_COMPANION, ConfigMapCache
from reserver.stores.edits import Edit, Tidying
from reserver.stores.entries import Entries
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import COLLECTION, ReservationObject
from reserver.stores.quota_codec import QuotaObject
from reserver.stores.quota_objects import QuotaCache
from reserver.stores.status import Statuses
from reserver.stores.writer import Outcome, Writer


@dataclass(frozen=True, slots=True)
class Store:
    """One kind of store of reservations.

    Attributes:
        cache: its stored and pending entries.
        writer: creates and edits entries.
        statuses: writes the status of entries.
    """

    cache: Cache[Any, Any]
    writer: Writer[Any]
    statuses: Statuses[Any]


@dataclass(frozen=True, slots=True)
class Stores(Listener):
    """All stores behind one interface.

    Attributes:
        by_kind: the stores, in the order in which a name is searched.
        default: the kind of store for new reservations.
    """

    by_kind: Mapping[StoreKind, Store]
    default: StoreKind

    def __iter__(self) -> Iterator[Store]:
        """Yield each store."""
        yield from self.by_kind.values()

    def at(self, ref: Ref) -> Store:
        """Return the store of a ref."""
        return self.by_kind[ref.kind]

    def subject(self, ref: Ref) -> tuple[Metadata, ObjectKind] | None:
        """Return metadata and kind of the object of a ref: a ConfigMap or a Reservation."""
        cache = self.at(ref).cache
        metadata = cache.subject(ref)
        return (metadata, cache.event_kind) if metadata else None

    def on_occurrence_over(self, ref: Ref) -> None:
        """Report the ending of an occurrence of a reservation."""
        self.at(ref).cache.occurrence_over(ref)

    def labels(self, ref: Ref) -> Mapping[str, str]:
        """Return the labels of the object at a ref."""
        return self.at(ref).cache.labels(ref)

    def reservations(self, ref: Ref) -> tuple[Reservation, ...]:
        """Return the reservations at a ref with an empty `item`: all items of a list, or one."""
        entries = self.at(ref).cache.entries(ref)
        return entries.reservations if entries else ()

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return the text and entries at a ref, stored or pending; None if neither exists."""
        return self.at(ref).cache.latest(ref)

    def short_nodes(self, state: State, now: float) -> ShortNodes:
        """Return the short nodes at `now`, in unix seconds (`RoomReport.look`)."""
        return self.by_kind[self.default].statuses.room.look(state, now)

    def is_unfinished(self, ref: Ref) -> bool:
        """Return whether an entry belongs to a set that is being written or rolled back."""
        return self.at(ref).cache.is_unfinished(ref)

    def due_edit(self, ref: Ref, now: float) -> Tidying | None:
        """Return the cleaner's edit of a ref, `item` empty, at `now` (unix seconds)."""
        edit: Tidying | None = self.at(ref).cache.due_edit(ref, now)
        return edit

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue a reservation whose status may have changed."""
        self.at(ref).statuses.queue.add(ref.whole)

    def on_fault(self, ref: Ref, fault: Fault) -> None:
        """Report an entry whose evaluation raised an exception: invalid, but its hold stays."""
        self.at(ref).cache.on_fault(ref, fault)

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield ConfigMaps, and namespaces of objects, with the number of unenforced entries."""
        for store in self:
            yield from store.cache.problem_counts()

    def writes_into(self, namespace: str) -> bool:
        """Return whether new reservations of another namespace are objects in that namespace."""
        is_object = self.default is StoreKind.OBJECT
        return is_object and namespace not in {"", self.by_kind[self.default].writer.namespace}

    def find(self, name: str, namespace: str = "") -> Ref | None:
        """Return the ref of the reservation with a name, stored or pending; None if absent.

        Args:
            namespace: the namespace of the object; empty for Reserver's own, in either store.
        """
        if self.writes_into(namespace):
            ref = Ref.of_object(namespace, name)
            return ref if self.latest(ref) is not None else None
        found = (store.writer.find(name) for store in self)
        return next(filter(None, found), None)

    def new_ref(self, sizes: Mapping[str, int], namespace: str = "") -> Ref:
        """Return a ref, with an empty key, where texts of the given sizes fit.

        Args:
            sizes: bytes of the texts, by name.
            namespace: the namespace of objects; empty for Reserver's own, as always for ConfigMaps.

        Raises:
            InvalidInput: the texts are too large for one object.
        """
        ref = self.by_kind[self.default].writer.new_ref(sizes)
        return ref._replace(namespace=namespace) if self.writes_into(namespace) else ref

    def insert(
        self,
        ref: Ref,
        texts: Mapping[str, str],
        entries: Mapping[str, Entries],
        labels: Mapping[str, Mapping[str, str]],
    ) -> asyncio.Task[Outcome]:
        """Start to write reservations, all or none, which hold from now on (`Writer.insert`)."""
        return self.at(ref).writer.insert(ref, texts, entries, labels)

    async def edit(self, edit: Edit) -> bool:
        """Change or remove the entry at one ref if it is unchanged (`Writer.edit`).

        Raises:
            InvalidInput: the CRD's schema refuses the spec.
            ApiError: the API server refused, or did not answer.
        """
        return await self.at(edit.ref).writer.edit(edit)


def store_reflectors(
    client: ApiClient, namespace: str, named: Collection[Name], store: ConfigMapCache
) -> Iterable[Reflector]:
    """Yield a watch for the labelled ConfigMaps of a namespace, and one for each named one."""

    def is_labelled(name: Name) -> bool:
        return name not in named and name[0] == namespace

    path, labelled = f"/api/v1/namespaces/{namespace}/configmaps", {"labelSelector": LABEL}
    reflector = Reflector(client, path, store_view(store, is_labelled), labelled)
    reflector.enclosing = (Enclosing(client, NAMESPACES, namespace, may_be_missing=True),)
    yield reflector
    for own in sorted(named):
        path = f"/api/v1/namespaces/{own[0]}/configmaps"
        selector = {"fieldSelector": f"metadata.name={own[1]}", "labelSelector": NO_COMPANION}
        yield Reflector(client, path, store_view(store, partial(eq, own)), selector)


def object_reflector(
    client: ApiClient, namespace: str, store: ObjectCache, *, is_optional: bool
) -> Reflector:
    """Return the watch for all Reservation objects; `is_optional` if the CRD may be missing."""
    reflector = Reflector(client, COLLECTION, object_view(store), is_optional=is_optional)
    home = Enclosing(client, NAMESPACES, namespace, may_be_missing=True)
    reflector.enclosing = (Enclosing(client, CRDS, "reservations.reserver.io"), home)
    return reflector


def quota_reflector(client: ApiClient, store: QuotaCache) -> Reflector:
    """Return the watch for all ReservationQuotas, whose CRD may be missing."""
    return Reflector(client, quota_codec.COLLECTION, quota_view(store), is_optional=True)


def store_view(
    store: ConfigMapCache, covers: Callable[[Name], bool]
) -> ObjectView[ConfigMapObject]:
    """Return a view that keeps the cache up to date with the ConfigMaps that it `covers`."""

    def seen(configmap: ConfigMapObject, listed: bool) -> Steps:  # noqa: FBT001 - as the view calls it
        if covers((configmap.metadata.namespace, configmap.metadata.name)):
            yield from store.put(configmap, listed=listed)

    def gone(name: Name) -> Steps:
        if covers(name):
            yield from store.drop(name, view.revision)

    view = ObjectView(
        ConfigMapObject,
        seen=seen,
        gone=gone,
        known=lambda: filter(covers, store.names()),
        revision_of=lambda name: _revision(store.metadata(name)) if covers(name) else UNKNOWN,
        ended=lambda revision: store.listed(covers, revision),
    )
    return view


def object_view(store: ObjectCache) -> ObjectView[ReservationObject]:
    """Return a view that keeps the cache of Reservation objects up to date."""
    view: ObjectView[ReservationObject] = ObjectView(
        ReservationObject,
        seen=lambda item, listed: store.put(item, listed=listed),
        gone=lambda name: store.drop(name, view.revision),
        known=store.names,
        revision_of=lambda name: _revision(store.subject(Ref.of_object(*name))),
        ended=store.listed,
    )
    return view


def quota_view(store: QuotaCache) -> ObjectView[QuotaObject]:
    """Return a view that keeps the cache of ReservationQuotas up to date."""
    return ObjectView(
        QuotaObject,
        seen=lambda item, _: store.put(item),
        gone=store.drop,
        known=store.names,
    )


def _revision(metadata: Metadata | None) -> int:
    """Return the cached resourceVersion of an object; 0 if it is absent."""
    return (metadata.revision or UNKNOWN) if metadata else 0
