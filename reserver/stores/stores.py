"""All stores as one: only here is known which store a ref is in; and the watches that feed them."""

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
from reserver.stores.cache import Cache, Name
from reserver.stores.codec import quota_codec
from reserver.stores.codec.quota_codec import QuotaObject
from reserver.stores.configmap.cache import LABEL, NO_COMPANION, ConfigMapCache
from reserver.stores.configmap.entries import Entries
from reserver.stores.configmap.entry_edits import Edit
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import COLLECTION, ReservationObject
from reserver.stores.object.edits import Tidying
from reserver.stores.quota_objects import QuotaCache
from reserver.stores.status import Statuses
from reserver.stores.writer import Outcome, Writer


@dataclass(frozen=True, slots=True)
class Store:
    """One kind of store of reservations.

    Attributes:
        cache: what is written there, and being written.
        writer: writes there.
        statuses: says there what became of it.
    """

    cache: Cache[Any, Any]
    writer: Writer[Any]
    statuses: Statuses[Any]


@dataclass(frozen=True, slots=True)
class Stores(Listener):
    """All stores as one.

    Attributes:
        by_kind: the stores; a name is looked for in this order.
        default: where new reservations are written.
    """

    by_kind: Mapping[StoreKind, Store]
    default: StoreKind

    def __iter__(self) -> Iterator[Store]:
        """Yield each of them."""
        yield from self.by_kind.values()

    def at(self, ref: Ref) -> Store:
        """Return the store that a ref is in."""
        return self.by_kind[ref.kind]

    def subject(self, ref: Ref) -> tuple[Metadata, ObjectKind] | None:
        """Return metadata and kind of what a ref is in: its ConfigMap, or the Reservation."""
        cache = self.at(ref).cache
        metadata = cache.subject(ref)
        return (metadata, cache.event_kind) if metadata else None

    def on_occurrence_over(self, ref: Ref) -> None:
        """Report what became of an occurrence of a reservation."""
        self.at(ref).cache.occurrence_over(ref)

    def labels(self, ref: Ref) -> Mapping[str, str]:
        """Return the labels of the object at a ref."""
        return self.at(ref).cache.labels(ref)

    def reservations(self, ref: Ref) -> tuple[Reservation, ...]:
        """Return what is written at a ref, `item` empty: the items of a list, or one."""
        entries = self.at(ref).cache.entries(ref)
        return entries.reservations if entries else ()

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return the entry that is written at a ref, or being written, and its reservation."""
        return self.at(ref).cache.latest(ref)

    def short_nodes(self, state: State, now: float) -> ShortNodes:
        """Return where room is short at `now`, in unix seconds; passes report what changes."""
        return self.by_kind[self.default].statuses.room.look(state, now)

    def is_unfinished(self, ref: Ref) -> bool:
        """Return whether an entry is of a set that is being written, or taken back."""
        return self.at(ref).cache.is_unfinished(ref)

    def due_edit(self, ref: Ref, now: float) -> Tidying | None:
        """Return the cleaner's edit of a ref, `item` empty, at `now` (unix seconds)."""
        edit: Tidying | None = self.at(ref).cache.due_edit(ref, now)
        return edit

    def on_reservation_changed(self, ref: Ref) -> None:
        """Note that the status of a reservation may have changed."""
        self.at(ref).statuses.queue.add(ref.whole)

    def on_fault(self, ref: Ref, fault: Fault) -> None:
        """Note an entry that could not be judged: it counts as invalid, and holds on."""
        self.at(ref).cache.on_fault(ref, fault)

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield ConfigMaps, and namespaces of objects, with the number of entries not enforced."""
        for store in self:
            yield from store.cache.problem_counts()

    def writes_into(self, namespace: str) -> bool:
        """Return whether new reservations of a namespace are objects there, beyond our own."""
        is_object = self.default is StoreKind.OBJECT
        return is_object and namespace not in {"", self.by_kind[self.default].writer.namespace}

    def find(self, name: str, namespace: str = "") -> Ref | None:
        """Return where the reservation of a name is written, or being written.

        Args:
            namespace: of its object; empty for our own, where either store may have it.
        """
        if self.writes_into(namespace):
            ref = Ref.of_object(namespace, name)
            return ref if self.latest(ref) is not None else None
        found = (store.writer.find(name) for store in self)
        return next(filter(None, found), None)

    def new_ref(self, sizes: Mapping[str, int], namespace: str = "") -> Ref:
        """Return a ref, its key empty, with room for texts of so many bytes by name.

        Args:
            sizes: of the texts.
            namespace: of objects; empty for our own. ConfigMaps are in our own only.

        Raises:
            InvalidInput: there is none for so many.
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
        """Begin to write reservations, all or none; they hold from now on (`Writer.insert`)."""
        return self.at(ref).writer.insert(ref, texts, entries, labels)

    async def edit(self, edit: Edit) -> bool:
        """Change or remove what stands at one ref, if it is as it was seen (`Writer.edit`).

        Raises:
            InvalidInput: the API server does not take it.
            ApiError: the API server refused, or did not answer.
        """
        return await self.at(edit.ref).writer.edit(edit)


def store_reflectors(
    client: ApiClient, namespace: str, named: Collection[Name], store: ConfigMapCache
) -> Iterable[Reflector]:
    """Yield one watch for the labelled ConfigMaps of a namespace, and one for each named."""

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
    """Return the watch for all Reservation objects; `is_optional`: their CRD may be missing."""
    reflector = Reflector(client, COLLECTION, object_view(store), is_optional=is_optional)
    home = Enclosing(client, NAMESPACES, namespace, may_be_missing=True)
    reflector.enclosing = (Enclosing(client, CRDS, "reservations.reserver.io"), home)
    return reflector


def quota_reflector(client: ApiClient, store: QuotaCache) -> Reflector:
    """Return the watch for all ReservationQuotas; without their CRD there are none."""
    return Reflector(client, quota_codec.COLLECTION, quota_view(store), is_optional=True)


def store_view(
    store: ConfigMapCache, covers: Callable[[Name], bool]
) -> ObjectView[ConfigMapObject]:
    """Return a view that keeps the store up to date with the ConfigMaps that it alone `covers`."""

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
    """Return a view that keeps the store of Reservation objects up to date."""
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
    """Return a view that keeps what ReservationQuotas say up to date."""
    return ObjectView(
        QuotaObject,
        seen=lambda item, _: store.put(item),
        gone=store.drop,
        known=store.names,
    )


def _revision(metadata: Metadata | None) -> int:
    """Return at which resourceVersion an object is known; 0 if there is none."""
    return (metadata.revision or UNKNOWN) if metadata else 0
