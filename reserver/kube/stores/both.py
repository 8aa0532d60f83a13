"""Both stores behind one interface: ConfigMaps, and Reservation objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from reserver.errors import Fault
from reserver.kube.stores.cache import Name
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.object.cache import ObjectCache
from reserver.reservations.reservation import Ref, Reservation, StoreKind
from reserver.wire.k8s.objects import Metadata
from reserver.wire.spec.edits import Deletion, Edit
from reserver.wire.spec.entries import Entries, Problem


class AnyStore(Protocol):
    """What the rest of Reserver needs of a store."""

    def problems(self) -> Iterator[Problem]:
        """Yield why entries are not enforced."""

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield the parts of the store, each with the number of its entries not enforced."""

    def spoiled(self, ref: Ref, fault: Fault) -> None:
        """Take note of an entry that could not be judged: it counts as invalid, and holds on."""

    def due_edit(self, ref: Ref, now: float) -> Edit | Deletion | None:
        """Return the edit that tidies a place, `item` empty, at `now` (unix seconds)."""

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return what is written at a place, or being written, and what that says."""

    async def superseded(self, ref: Ref, text: str) -> None:
        """Wait until something else than this is written at a place, or nothing."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Both stores as one."""

    configmaps: ConfigMapCache
    objects: ObjectCache

    def at(self, ref: Ref) -> AnyStore:
        """Return the store that a place is in."""
        return self.configmaps if ref.kind is StoreKind.CONFIGMAP else self.objects

    def metadata(self, ref: Ref) -> Metadata | None:
        """Return the metadata of what a place is in: its ConfigMap, or the Reservation itself."""
        if ref.kind is StoreKind.CONFIGMAP:
            return self.configmaps.metadata((ref.namespace, ref.configmap))
        known = self.objects.known(ref)
        return known.metadata if known else None

    def reservations(self, ref: Ref) -> tuple[Reservation, ...]:
        """Return what is written at a place, `item` empty: the items of a list, or one."""
        if ref.kind is StoreKind.CONFIGMAP:
            entries = self.configmaps.entries(ref)
            return entries.reservations if entries else ()
        known = self.objects.known(ref)
        return known.entries.reservations if known else ()

    def problems(self) -> Iterator[Problem]:
        """Yield why entries are not enforced."""
        return chain(self.configmaps.problems(), self.objects.problems())

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield ConfigMaps, and namespaces of objects, with the number of entries not enforced."""
        return chain(self.configmaps.problem_counts(), self.objects.problem_counts())

    def spoiled(self, ref: Ref, fault: Fault) -> None:
        """Take note of an entry that could not be judged: it counts as invalid, and holds on."""
        self.at(ref).spoiled(ref, fault)

    def due_edit(self, ref: Ref, now: float) -> Edit | Deletion | None:
        """Return the edit that tidies a place, `item` empty, at `now` (unix seconds)."""
        return self.at(ref).due_edit(ref, now)

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return what is written at a place, or being written, and what that says."""
        return self.at(ref).latest(ref)
