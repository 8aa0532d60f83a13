"""Creates Reservation objects, and edits them in any namespace.

The API server writes the objects of a set one at a time: the first is marked as unfinished until
all are written (docs/adr/0012).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog

from reserver.errors import ApiError, InvalidInput, NotReady, ReserverError, Taken
from reserver.k8s.client import JSON_PATCH
from reserver.k8s.objects.objects import decode
from reserver.reservations.reservation import Ref
from reserver.stores.edits import Deletion, Edit
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject, collection, path
from reserver.stores.object.edits import completion, manifest, replacement
from reserver.stores.object.entries import KnownObject
from reserver.stores.writer import MOST_BYTES, MOST_TRIES, Outcome, Writer

log = structlog.get_logger(__name__)

_CONNECTIONS = 8
"""Most creations in flight; the other connections of the pool are for bindings."""


@dataclass(eq=False, repr=False)
class ObjectWriter(Writer[ObjectCache]):
    """Writes reservations as objects."""

    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_CONNECTIONS), init=False
    )

    def find(self, name: str) -> Ref | None:
        """Return the ref of the reservation with a name, stored or pending; None if absent."""
        ref = Ref.of_object(self.namespace, name)
        return ref if self.cache.latest(ref) is not None else None

    def new_ref(self, sizes: Mapping[str, int]) -> Ref:
        """Return the ref, without a name, for objects; `sizes` are bytes by name."""
        name, size = max(sizes.items(), key=lambda each: each[1])
        if size > MOST_BYTES:
            problem = f"{name} takes {size} bytes, which is too much for one object"
            raise InvalidInput("", problem, f"write {MOST_BYTES} at most")
        return Ref.of_object(self.namespace, "")

    async def _edit(self, edit: Edit) -> bool:
        known = await self.cache.as_seen(edit.ref, edit.seen)
        if known is None:
            return False
        if edit.value is None:
            return await self._delete(edit.ref, known)
        return await self._replace(edit.ref, known, edit.value, edit.labels)

    async def _insert(self, specs: Mapping[Ref, str], set_id: str) -> Outcome:
        if set_id:
            return await self._insert_set(specs, set_id)
        ((ref, text),) = specs.items()
        labels, owner = self.cache.labels(ref), self.cache.owner(ref)
        outcome = await self._create(ref, manifest(ref, text, labels, owner=owner))
        await self.cache.placed(ref)
        return outcome

    async def _insert_set(self, specs: Mapping[Ref, str], set_id: str) -> Outcome:
        first, *others = specs
        bodies = {
            ref: manifest(
                ref,
                text,
                self.cache.labels(ref),
                set_id,
                len(specs) * (ref == first),
                self.cache.owner(ref),
            )
            for ref, text in specs.items()
        }
        outcome = await self._create(first, bodies[first])
        if outcome is not None:
            for ref in others:
                self.cache.withdraw(ref)
            return outcome
        async with asyncio.TaskGroup() as tasks:
            written = [tasks.create_task(self._create(ref, bodies[ref])) for ref in others]
        refused = next(filter(None, (task.result() for task in written)), None)
        outcome = refused or await self._finish(first, set_id)
        if outcome is not None:
            log.warning("set of reservations taken back", first=str(first), why=str(outcome))
            if not await self.cache.take_back(first, set_id):
                outcome = refused
        for ref in specs:
            await self.cache.placed(ref)
        return outcome

    async def _create(self, ref: Ref, body: object) -> Outcome:
        """Create an object; a failure ends its hold."""
        try:
            async with self._slots:
                self.cache.reading.require_room(ref.namespace)
                created = await self._send(ref, body)
        except ReserverError as exc:
            self.cache.withdraw(ref)
            log.warning("reservation not written", reservation=str(ref), why=str(exc))
            return exc
        self.cache.written(ref, created.metadata)
        return None

    async def _send(self, ref: Ref, body: object) -> ReservationObject:
        """Create an object, and return it.

        A request without an answer is sent again: the API server accepts only one of them.

        Raises:
            Taken: another object of that name exists.
            InvalidInput: the CRD's schema refuses the spec.
            ApiError: the API server refused.
        """
        may_be_written, backoff = False, self.patience.backoff()
        while True:
            self.writes += 1
            try:
                answer = await self.client.create(collection(ref.namespace), body)
                return decode(ReservationObject, answer)
            except ApiError as exc:
                if exc.is_conflict:
                    there = await self._there(ref) if may_be_written else None
                    if there is not None and self.cache.is_expected(there):
                        return there
                    raise Taken(f"there is a Reservation {ref} already") from exc
                if invalid := _invalid(exc):
                    raise invalid from exc
                if exc.is_definite:
                    raise
                may_be_written = True
                log.warning("write not confirmed, asking again", why=str(exc))
            await backoff.sleep()

    async def _finish(self, first: Ref, set_id: str) -> Outcome:
        """Mark a set as finished, after which it is not rolled back."""
        backoff = self.patience.backoff()
        while True:
            try:
                item = await self._there(first)
                if item is None or item.metadata.set_id != set_id:
                    return NotReady(f"{first} was deleted while its set was written; try again")
                if not item.metadata.is_unfinished:
                    return None
                if item.metadata.is_abandoned:
                    return NotReady("another Reserver has taken the set back; try again")
                self.writes += 1
                patch = completion(item.metadata)
                await self.client.patch(path(first), patch, JSON_PATCH)
            except ApiError as exc:
                if exc.is_definite and not exc.is_late:
                    return exc
                log.warning("end of a set not confirmed, asking again", why=str(exc))
            else:
                return None
            await backoff.sleep()

    async def _delete(self, ref: Ref, known: KnownObject) -> bool:
        uid, version = known.metadata.uid, known.metadata.resource_version
        for _ in range(MOST_TRIES):
            deletion = Deletion(ref, path(ref), uid, version, "released")
            self.writes += 1
            if await self._edits.edit(deletion):
                await self.cache.until(lambda: self._uid(ref) != uid)
                return True
            now = await self._there(ref)
            if now is None or now.metadata.uid != uid or bytes(now.spec) != known.spec:
                return False
            version = now.metadata.resource_version  # Only its status was written.
        return False

    async def _replace(
        self, ref: Ref, known: KnownObject, text: str, labels: Mapping[str, str | None]
    ) -> bool:
        uid = known.metadata.uid
        self.writes += 1
        try:
            patch = replacement(known.metadata, known.spec, text, labels)
            answer = await self.client.patch(path(ref), patch, JSON_PATCH)
        except ApiError as exc:
            if invalid := _invalid(exc):
                raise invalid from exc
            if exc.is_late:
                return False
            raise
        revision = decode(ReservationObject, answer).metadata.revision
        await self.cache.until(lambda: self._uid(ref) != uid or self._revision(ref) >= revision)
        return True

    async def _there(self, ref: Ref) -> ReservationObject | None:
        return await self._read(path(ref), ReservationObject)

    def _uid(self, ref: Ref) -> str:
        known = self.cache.known(ref)
        return known.metadata.uid if known else ""

    def _revision(self, ref: Ref) -> int:
        known = self.cache.known(ref)
        return known.metadata.revision if known else 0


def _invalid(error: ApiError) -> InvalidInput | None:
    """Return the refusal of a spec by the CRD's schema; None for any other error.

    A patch that cannot be applied has another message (apimachinery/pkg/api/errors).
    """
    if error.status != HTTPStatus.UNPROCESSABLE_ENTITY or " is invalid: " not in error.message:
        return None
    return InvalidInput("spec", error.message, "see kubectl explain reservation.spec")
