"""Moves reservations from one store to the other, while their holds stay in force.

Each reservation is written at its new ref first; once Reserver has acknowledged the new entry, the
old entry is removed with a precondition. Meanwhile both are one reservation (docs/adr/0009).
After an interruption both entries stay; running the migration again continues.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import JSON_PATCH, ApiClient
from reserver.k8s.objects.objects import ConfigMapObject, ObjectList, decode
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, rewrite
from reserver.stores.configmap import companion_codec, entry_edits
from reserver.stores.configmap.entries import read_key
from reserver.stores.edits import Deletion, Edit
from reserver.stores.entries import Entries
from reserver.stores.object.codec import API_VERSION, KIND, ReservationObject, collection, path
from reserver.stores.object.entries import read_object
from reserver.stores.writer import StoreEdits

_LOOK_EVERY_S = 0.2
_MOST_TRIES = 20


class Moved(NamedTuple):
    """The result for one reservation; `problem` is empty on success."""

    source: str
    destination: str
    problem: str = ""


class NotMoved(Exception):
    """A reservation was not moved: it stays at its old ref or at both refs."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Moves reservations from one store to the other.

    Attributes:
        clock: returns unix seconds.
        home: Reserver's own namespace, whose Reservations may have owners in any namespace.
        patience_s: timeout for the acknowledgement of a reservation, in seconds.
    """

    client: ApiClient
    clock: Callable[[], float]
    home: str
    patience_s: float

    async def to_objects(self, store: tuple[str, str], namespace: str) -> AsyncIterator[Moved]:
        """Move the entries of a ConfigMap into Reservations of a namespace; yield each result.

        Raises:
            ApiError: the ConfigMap cannot be read.
        """
        configmap = await self._configmap(*store)
        for key, text in (configmap.data or {}).items():
            ref = Ref(*store, key)
            entries = read_key(ref, text, self.clock())
            for problem in entries.problems:
                yield Moved(str(ref), "", str(problem.error))
            for reservation in entries.reservations:
                ref = Ref.of_object(namespace, rewrite.name_for(reservation))
                work = self._to_object(reservation, text, ref, stamped=not entries.unstamped)
                yield await _result(reservation.ref, ref, work)

    async def to_configmap(self, namespace: str, store: tuple[str, str]) -> AsyncIterator[Moved]:
        """Move the Reservations of a namespace into a ConfigMap; yield each result.

        Raises:
            ApiError: the Reservations cannot be listed, or the ConfigMap is absent.
        """
        await self._configmap(*store)
        listed = await self.client.get(collection(namespace))
        for raw in decode(ObjectList, listed).items or ():
            item = decode(ReservationObject, raw)
            ref = Ref(*store, item.ref.key)
            yield await _result(item.ref, ref, self._to_key(item, ref))

    async def _to_object(
        self, reservation: Reservation, text: str, ref: Ref, *, stamped: bool
    ) -> None:
        if not stamped:
            raise NotMoved("Reserver has not written its expiresAt yet: does it run?")
        written = {} if reservation.ref.item else document.parse(text)
        spec = rewrite.rewritten(reservation, written, ref, self.home)
        metadata = {"name": ref.key, "namespace": ref.namespace}
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
        try:
            await self.client.create(collection(ref.namespace), body)
        except ApiError as exc:
            if not exc.is_conflict:
                raise
        await self._until(lambda: self._object_holds(ref, reservation))
        await self._remove_entry(reservation)

    async def _object_holds(self, ref: Ref, reservation: Reservation) -> bool:
        item = await self._object(ref)
        if item is None:
            return True  # Acknowledged, and ended since.
        entries = read_object(item, self.clock(), self.home)
        _check(entries, reservation, ref)
        status = item.stored_status()
        return status is not None and status.observed_generation == item.metadata.generation

    async def _remove_entry(self, reservation: Reservation) -> None:
        key = reservation.ref._replace(item="")
        for _ in range(_MOST_TRIES):
            configmap = await self._configmap(key.namespace, key.configmap)
            text = (configmap.data or {}).get(key.key)
            found = read_key(key, text, self.clock()).reservations if text is not None else ()
            now = {r.ref: r for r in found}.get(reservation.ref)
            if text is None or now is None:
                return
            if now != reservation:
                raise NotMoved("it was edited meanwhile: the Reservation holds the old spec")
            edit: Edit | None = Edit(key, text, None, "moved")
            if reservation.ref.item:
                edit = entry_edits.remove(key, text, (now,))
            if edit is None or await StoreEdits(self.client).edit(edit):
                return
        raise NotMoved("it changes all the time; stop its writer")

    async def _to_key(self, item: ReservationObject, ref: Ref) -> None:
        entries = read_object(item, self.clock(), self.home)
        if entries.problems:
            raise NotMoved(str(entries.problems[0].error))
        (reservation,) = entries.reservations
        written = document.parse(bytes(item.spec).decode())
        spec = rewrite.rewritten(reservation, written, ref, self.home)
        text = json.dumps(spec, ensure_ascii=False)
        await self._insert(ref, text, reservation)
        await self._until(lambda: self._key_holds(ref, reservation))
        await self._remove_object(reservation)

    async def _insert(self, ref: Ref, text: str, reservation: Reservation) -> None:
        for _ in range(_MOST_TRIES):
            data = (await self._configmap(ref.namespace, ref.configmap)).data or {}
            if ref.key in data:
                _check(read_key(ref, data[ref.key], self.clock()), reservation, ref)
                return  # Written by an earlier run.
            patch = entry_edits.insertion({ref.key: text}, into_empty=not data)
            where = f"/api/v1/namespaces/{ref.namespace}/configmaps/{ref.configmap}"
            try:
                await self.client.patch(where, patch, JSON_PATCH)
            except ApiError as exc:
                if not exc.is_overtaken:
                    raise
            else:
                return
        raise NotMoved("the ConfigMap changes all the time; stop its writer")

    async def _key_holds(self, ref: Ref, reservation: Reservation) -> bool:
        data = (await self._configmap(ref.namespace, ref.configmap)).data or {}
        if ref.key not in data:
            return True  # Acknowledged, and ended since.
        try:
            name = companion_codec.companion_name(ref.configmap)
            statuses = (await self._configmap(ref.namespace, name)).data or {}
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return False
        status: dict[str, Any] = decode(dict[str, Any], statuses.get(ref.key, "{}").encode())
        return status.get("digest") == reservation.digest

    async def _remove_object(self, reservation: Reservation) -> None:
        for _ in range(_MOST_TRIES):
            item = await self._object(reservation.ref)
            if item is None:
                return
            now = read_object(item, self.clock(), self.home).reservations
            if [r.edition for r in now] != [reservation.edition]:
                raise NotMoved("it was edited meanwhile: the entry holds the old spec")
            metadata = item.metadata
            version = metadata.resource_version
            deletion = Deletion(item.ref, item.path, metadata.uid, version, "moved")
            if await StoreEdits(self.client).edit(deletion):
                return
        raise NotMoved("it changes all the time; stop its writer")

    async def _configmap(self, namespace: str, name: str) -> ConfigMapObject:
        where = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        return decode(ConfigMapObject, await self.client.get(where))

    async def _object(self, ref: Ref) -> ReservationObject | None:
        try:
            return decode(ReservationObject, await self.client.get(path(ref)))
        except ApiError as exc:
            if not exc.is_absent:
                raise
            return None

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(self.patience_s):
                while not await holds():  # noqa: ASYNC110 - asks the API server
                    await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError as exc:
            problem = f"Reserver has not acknowledged it within {self.patience_s:.0f} s"
            raise NotMoved(f"{problem}; it is written in both stores, so run this again") from exc


def _check(entries: Entries, reservation: Reservation, ref: Ref) -> None:
    if entries.problems:
        raise NotMoved(f"{ref}: {entries.problems[0].error}")
    if [r.edition for r in entries.reservations] != [reservation.edition]:
        raise NotMoved(f"{ref} is another reservation")


async def _result(source: Ref, destination: Ref, work: Awaitable[None]) -> Moved:
    try:
        await work
    except (ApiError, InvalidInput, NotMoved) as exc:
        return Moved(str(source), str(destination), str(exc))
    return Moved(str(source), str(destination))
