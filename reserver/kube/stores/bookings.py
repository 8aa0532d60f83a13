"""Both ways to write reservations as one: into ConfigMaps, and as objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from reserver.kube.stores.both import Stores
from reserver.kube.stores.configmap.writer import Booking, Outcome
from reserver.kube.stores.object.writer import ObjectBooking
from reserver.reservations.reservation import Ref, StoreKind
from reserver.wire.spec.edits import Edit
from reserver.wire.spec.entries import Entries

BEHIND_S = 5.0
"""The longest wait for a watch to show what somebody else was faster with, in seconds."""


@dataclass(frozen=True, slots=True)
class Bookings:
    """Both ways to write reservations as one.

    Attributes:
        stores: what is written, as far as the watches have shown it.
        configmaps: writes into ConfigMaps.
        objects: writes objects.
        default: the one of them that writes what is new.
    """

    stores: Stores
    configmaps: Booking
    objects: ObjectBooking
    default: Booking | ObjectBooking

    def find(self, name: str) -> Ref | None:
        """Return where the reservation of a name is written, or being written."""
        return self.configmaps.find(name) or self.objects.find(name)

    def is_ending(self, ref: Ref) -> bool:
        """Return whether what is there is being taken back, because its set was not finished."""
        return ref.kind is StoreKind.OBJECT and self.objects.is_ending(ref)

    def place(self, sizes: Mapping[str, int]) -> Ref:
        """Return a place, its key empty, with room for so many bytes by name.

        Raises:
            InvalidInput: there is none for so many.
        """
        return self.default.place(sizes)

    def insert(
        self, place: Ref, texts: Mapping[str, str], entries: Mapping[str, Entries]
    ) -> asyncio.Task[Outcome]:
        """Begin to write reservations, all or none; they hold from now on."""
        return self._at(place).insert(place, texts, entries)

    async def edit(self, edit: Edit) -> bool:
        """Change or remove what stands at one place and return once that is in force.

        Returns:
            False if it is not as it was seen: somebody else was faster. What they have written
            is seen by then, unless a watch is late: the cleaner removes what was claimed.

        Raises:
            InvalidInput: the API server does not take it.
            ApiError: the API server refused, or did not answer.
        """
        if await self._at(edit.ref).edit(edit):
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(BEHIND_S):
                await self.stores.at(edit.ref).superseded(edit.ref, edit.seen)
        return False

    def _at(self, place: Ref) -> Booking | ObjectBooking:
        return self.configmaps if place.kind is StoreKind.CONFIGMAP else self.objects
