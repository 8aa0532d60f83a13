"""All stores as one: the only place that knows which store a ref is in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reserver.errors import Fault
from reserver.k8s.objects.objects import Metadata, ObjectKind
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.cache import Cache, Name
from reserver.stores.configmap.entries import Entries
from reserver.stores.configmap.entry_edits import Edit
from reserver.stores.object.edits import Tidying
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
        """Return what is written at a ref, or being written, and what that says."""
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
