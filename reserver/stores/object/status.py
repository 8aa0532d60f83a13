"""Writes the status subresource of Reservation objects.

The status follows the ledger, as the companions of ConfigMaps do. Each write carries the
resourceVersion that its writer has read, so only one of several Reservers writes a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.api_errors import advice
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.times import show_moment
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject, ReservationStatus, StatusClaim, path
from reserver.stores.object.entries import KnownObject
from reserver.stores.object.status_codec import (
    faulty,
    invalid,
    is_newly_unbacked,
    is_violated,
    new_remarks,
    valid,
)
from reserver.stores.status import MayWrite, Statuses, always

log = structlog.get_logger(__name__)

SWEEP_EVERY_S = 60.0
"""Seconds after which all objects are checked again, in case another client wrote a status."""

_AT_ONCE = 100
"""Most writes that start before their answers are awaited."""

_CONNECTIONS = 8
"""Most writes in flight; the other connections of the pool are for bindings."""


class _Write(NamedTuple):
    """A status to write, with the object that it was computed from."""

    ref: Ref
    seen: KnownObject
    version: str
    before: ReservationStatus | None
    status: ReservationStatus


@dataclass(eq=False, repr=False)
class ObjectStatuses(Statuses[ObjectCache]):
    """Keeps the status of all Reservation objects up to date.

    Attributes:
        refused: called with each object whose status the API server refused, and the error.
    """

    name = "object status"

    refused: Callable[[Ref, ApiError], None] = lambda *_: None

    def __post_init__(self) -> None:
        """Begin with an empty queue."""
        super().__post_init__()
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self._swept_at = 0.0
        self._fault = ""

    async def write(self, state: State, may_write: MayWrite = always) -> None:
        """Write the statuses that have changed; a failed write is repeated later."""
        now, pacer = self.now, Pacer()
        if not 0 <= now - self._swept_at < SWEEP_EVERY_S:
            self._swept_at = now
            for namespace, name in self.cache.names():
                self.queue.add(Ref.of_object(namespace, name))
                await pacer.give_way()
        await pacer.run(self.room.report(state, now))
        for refs in self._due_refs():
            pending = dict.fromkeys(refs)
            while pending:
                writes = await self._due(pending, state, pacer)
                if writes and not await may_write():
                    for ref in (*pending, *(write.ref for write in writes)):
                        self.queue.add(ref)
                    return
                async with asyncio.TaskGroup() as tasks:
                    for write in writes:
                        tasks.create_task(self._try(write))

    async def _due(self, pending: dict[Ref, None], state: State, pacer: Pacer) -> list[_Write]:
        """Remove refs from `pending`, and return the writes for their present status."""
        short_nodes = self.room.look(state, self.now)
        writes: list[_Write] = []
        while pending and len(writes) < _AT_ONCE:
            ref = next(iter(pending))
            del pending[ref]
            known = self.cache.known(ref)
            if known is None:
                self.queue.discard(ref)  # Deleted meanwhile.
                continue
            with quarantined("status", ref, partial(self.cache.on_fault, ref)):
                status = self._status(known, ref, state, short_nodes)
                if status == known.status:
                    self.queue.discard(ref)
                else:
                    version = known.metadata.resource_version
                    writes.append(_Write(ref, known, version, known.status, status))
            if await pacer.give_way():
                return writes
        return writes

    def _status(
        self, known: KnownObject, ref: Ref, state: State, short_nodes: ShortNodes
    ) -> ReservationStatus:
        generation, now = known.metadata.generation, self.now
        reservation = known.reservation
        if reservation is None:
            return invalid(known.entries.problems[0], known.status, generation, now)
        if known.entries.problems:
            return faulty(known.entries.problems[0], known.status, generation, now)
        # This write includes the placements, so they need not be in the status before.
        reservation = state.ledger.held_as(reservation)
        status = short_nodes.status(reservation, state.ledger)
        claims = _claims(ref, state, show_moment(now))
        entries = known.entries
        status = status._replace(exceeds=status.exceeds or entries.beyond, ignored=entries.ignored)
        return valid(reservation, status, claims, known.status, generation, now)

    async def _try(self, write: _Write) -> None:
        with quarantined("status", write.ref, partial(self.cache.on_fault, write.ref)):
            await self._write(write)

    async def _write(self, write: _Write) -> None:
        metadata = write.seen.metadata
        body = {"metadata": {"resourceVersion": write.version}, "status": write.status}
        try:
            async with self._slots:
                answer = await self.client.patch(f"{path(write.ref)}/status", body)
        except ApiError as exc:
            if exc.status == HTTPStatus.NOT_FOUND:
                self.queue.succeeded(write.ref)  # Deleted; the watch will show this.
            else:
                self._later(write.ref, exc)
            return
        self._fault = ""
        self.queue.succeeded(write.ref)
        self.writes += 1
        with suppress(InvalidInput):  # The watch shows it as well.
            self.cache.wrote(decode(ReservationObject, answer))
        if write.before is None:
            self.acknowledged(write.ref)
        if is_violated(write.before, write.status):
            self.violated(write.ref)
        for remark in new_remarks(write.before, write.status):
            self.warn(metadata, *remark)
        if is_newly_unbacked(write.before, write.status):
            reason = "NodeNotFound" if write.status.phase == Phase.FAILED else "NotBacked"
            message = next(c.message for c in write.status.conditions if c.type == "Backed")
            self.warn(metadata, reason, message)
            log.warning("hold not backed", reservation=str(write.ref), why=message)

    def _later(self, ref: Ref, error: ApiError) -> None:
        """Retry a write: in the next pass after a conflict, else with a growing pause."""
        if error.status == HTTPStatus.CONFLICT:
            self.queue.add(ref)
            return
        if error.is_definite:
            self.refused(ref, error)
        fault = advice(error)
        is_first = self.queue.failed(ref, error, fault) == 1
        if is_first and fault != self._fault:  # One line for each fault, not for each retry.
            log.warning("status cannot be written, retrying", reservation=str(ref), why=fault)
            self._fault = fault


def _claims(ref: Ref, state: State, now: str) -> Iterator[StatusClaim]:
    landed = state.ledger.landed(ref)
    for uid, pod in state.ledger.claimants(ref).items():
        seen = state.pods.get(pod.name) if pod else None
        assumption = state.assumption(uid)
        node = seen.node if seen and seen.uid == uid else ""
        if not node and assumption is not None:
            node = assumption.node
        yield StatusClaim(str(pod.name) if pod else "", uid, node or landed.get(uid, ""), now)
