"""Writes reservations as objects, into Reserver's own namespace; and changes objects anywhere.

What is written holds from the moment it is decided, before the API server is asked; if it turns out
not to have been written, the hold goes again. A set is several objects, of which the API server
writes one at a time: the first says that the set is unfinished until all are there (docs/adr/0012).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from http import HTTPStatus
from uuid import uuid4

import structlog

from reserver.errors import ApiError, InvalidInput, NotReady, ReserverError, Taken
from reserver.kube.api.client import JSON_PATCH, ApiClient
from reserver.kube.stores.configmap.writer import LAST_PAUSE_S, MOST_BYTES, PAUSE_S, Outcome
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.stores.object.reading import KnownObject
from reserver.reservations.reservation import Ref
from reserver.wire.k8s.objects import decode
from reserver.wire.spec.edits import Deletion, Edit
from reserver.wire.spec.entries import Entries
from reserver.wire.spec.object import (
    ReservationObject,
    collection,
    completion,
    manifest,
    path,
    replacement,
)

log = structlog.get_logger(__name__)

_CONNECTIONS = 8
"""So many members of a set are written at once; bindings have the rest of the pool."""

_TRIES = 5


class ObjectBooking:
    """Writes reservations as objects.

    Attributes:
        writes: how many requests were made.
    """

    def __init__(
        self, client: ApiClient, store: ObjectCache, namespace: str, tasks: asyncio.TaskGroup
    ) -> None:
        """Write into a namespace; `tasks` owns the writes under way."""
        self._client = client
        self._store = store
        self._namespace = namespace
        self._tasks = tasks
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self.writes = 0

    def find(self, name: str) -> Ref | None:
        """Return where the reservation of a name is written, or being written."""
        ref = Ref.of_object(self._namespace, name)
        return ref if self._store.latest(ref) is not None else None

    def is_ending(self, ref: Ref) -> bool:
        """Return whether an object is being taken back, because its set was not finished."""
        return self._store.is_ending(ref)

    def place(self, sizes: Mapping[str, int]) -> Ref:
        """Return the place, its key empty, for objects of so many bytes by name.

        Raises:
            InvalidInput: one is too large.
        """
        name, size = max(sizes.items(), key=lambda each: each[1])
        if size > MOST_BYTES:
            problem = f"{name} takes {size} bytes, which is too much for one object"
            raise InvalidInput("", problem, f"write {MOST_BYTES} at most")
        return Ref.of_object(self._namespace, "")

    def insert(
        self, place: Ref, texts: Mapping[str, str], entries: Mapping[str, Entries]
    ) -> asyncio.Task[Outcome]:
        """Begin to write objects, all or none; they hold from now on.

        The write goes on if nobody waits for it.

        Args:
            place: in which namespace (`place`).
            texts: spec by name, as JSON, with an `origin` that no other object has.
            entries: what each spec says.
        """
        set_id = f"{place.namespace}/{uuid4().hex}" if len(texts) > 1 else ""
        specs = {place._replace(key=key): text for key, text in texts.items()}
        for ref, text in specs.items():
            self._store.expect(ref, text, entries[ref.key], set_id)
        work = self._insert_set(specs, set_id) if set_id else self._insert_one(specs)
        return self._tasks.create_task(work)

    async def edit(self, edit: Edit) -> bool:
        """Change or delete one object and return once that is in force.

        Returns:
            False if it is not as it was seen: somebody else was faster.

        Raises:
            InvalidInput: the API server does not take the spec.
            ApiError: the API server refused, or did not answer.
        """
        known = await self._store.as_seen(edit.ref, edit.seen)
        if known is None:
            return False
        if edit.value is None:
            return await self._delete(edit.ref, known)
        return await self._replace(edit.ref, known, edit.value)

    async def _insert_one(self, specs: Mapping[Ref, str]) -> Outcome:
        ((ref, text),) = specs.items()
        outcome = await self._create(ref, manifest(ref, text))
        await self._store.placed(ref)
        return outcome

    async def _insert_set(self, specs: Mapping[Ref, str], set_id: str) -> Outcome:
        first, *others = specs
        outcome = await self._create(first, manifest(first, specs[first], set_id, len(specs)))
        if outcome is not None:
            for ref in others:
                self._store.withdraw(ref)
            return outcome
        async with asyncio.TaskGroup() as tasks:
            written = [
                tasks.create_task(self._create(ref, manifest(ref, specs[ref], set_id)))
                for ref in others
            ]
        outcome = next(filter(None, (task.result() for task in written)), None)
        outcome = outcome or await self._finish(first, set_id)
        if outcome is not None:
            log.warning("set of reservations taken back", first=str(first), why=str(outcome))
            await self._store.take_back(set_id)
        for ref in specs:
            await self._store.placed(ref)
        return outcome

    async def _create(self, ref: Ref, body: object) -> Outcome:
        """Create an object that must not be there; one that was not created holds no more."""
        try:
            async with self._slots:
                created = await self._send(ref, body)
        except ReserverError as exc:
            self._store.withdraw(ref)
            log.warning("reservation not written", reservation=str(ref), why=str(exc))
            return exc
        self._store.written(ref, created.metadata.uid, created.metadata.revision)
        return None

    async def _send(self, ref: Ref, body: object) -> ReservationObject:
        """Return an object as it was created.

        A request without an answer is sent again: the API server carries out one of them at most.

        Raises:
            Taken: there is another one of that name.
            InvalidInput: the API server does not take the spec.
            ApiError: the API server refused.
        """
        may_be_written, pause = False, PAUSE_S
        while True:
            self.writes += 1
            try:
                answer = await self._client.create(collection(ref.namespace), body)
                return decode(ReservationObject, answer)
            except ApiError as exc:
                if exc.status == HTTPStatus.CONFLICT:
                    there = await self._read(ref) if may_be_written else None
                    if there is not None and self._store.is_expected(there):
                        return there
                    raise Taken(f"there is a Reservation {ref} already") from exc
                if invalid := _invalid(exc):
                    raise invalid from exc
                if exc.is_definite:
                    raise
                may_be_written = True
                log.warning("write not confirmed, asking again", why=str(exc))
            pause = await _rest(pause)

    async def _finish(self, first: Ref, set_id: str) -> Outcome:
        """Write down that all of a set is written: from then on it stands."""
        pause = PAUSE_S
        while True:
            try:
                item = await self._read(first)
                if item is None or item.metadata.set_id != set_id:
                    return NotReady(f"{first} was deleted while its set was written; try again")
                if not item.metadata.is_unfinished:
                    return None
                self.writes += 1
                patch = completion(item.metadata.uid)
                await self._client.patch(path(first), patch, JSON_PATCH)
            except ApiError as exc:
                if exc.is_definite and not _is_late(exc):
                    return exc
                log.warning("end of a set not confirmed, asking again", why=str(exc))
            else:
                return None
            pause = await _rest(pause)

    async def _delete(self, ref: Ref, known: KnownObject) -> bool:
        uid, version = known.metadata.uid, known.metadata.resource_version
        for _ in range(_TRIES):
            deletion = Deletion(ref, path(ref), uid, version, "released")
            self.writes += 1
            try:
                await self._client.delete(deletion.path, deletion.options())
            except ApiError as exc:
                if not _is_late(exc):
                    raise
            else:
                await self._store.until(lambda: self._uid(ref) != uid)
                return True
            now = await self._read(ref)
            if now is None or now.metadata.uid != uid or bytes(now.spec) != known.spec:
                return False
            version = now.metadata.resource_version  # Only its status was written.
        return False

    async def _replace(self, ref: Ref, known: KnownObject, text: str) -> bool:
        uid = known.metadata.uid
        self.writes += 1
        try:
            patch = replacement(uid, known.spec, text)
            answer = await self._client.patch(path(ref), patch, JSON_PATCH)
        except ApiError as exc:
            if invalid := _invalid(exc):
                raise invalid from exc
            if _is_late(exc):
                return False
            raise
        revision = decode(ReservationObject, answer).metadata.revision
        await self._store.until(lambda: self._uid(ref) != uid or self._revision(ref) >= revision)
        return True

    def _uid(self, ref: Ref) -> str:
        known = self._store.known(ref)
        return known.metadata.uid if known else ""

    def _revision(self, ref: Ref) -> int:
        known = self._store.known(ref)
        return known.metadata.revision if known else 0

    async def _read(self, ref: Ref) -> ReservationObject | None:
        """Return an object as the API server has it now, None if there is none."""
        pause = PAUSE_S
        while True:
            try:
                return decode(ReservationObject, await self._client.get(path(ref)))
            except ApiError as exc:
                if exc.status == HTTPStatus.NOT_FOUND:
                    return None
                if exc.is_definite:
                    raise
            pause = await _rest(pause)


async def _rest(pause: float) -> float:
    """Wait before a request is sent again, and return for how long to wait the next time."""
    await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load
    return min(2 * pause, LAST_PAUSE_S)


def _is_late(error: ApiError) -> bool:
    """Return whether somebody else was faster."""
    return error.is_overtaken or error.status in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}


def _invalid(error: ApiError) -> InvalidInput | None:
    """Return what the CRD's schema says against a spec, None for any other error.

    Of a failed patch the API server says something else (apimachinery/pkg/api/errors).
    """
    if error.status != HTTPStatus.UNPROCESSABLE_ENTITY or " is invalid: " not in error.message:
        return None
    return InvalidInput("spec", error.message, "see kubectl explain reservation.spec")
