"""Writes CapacityBuffers as they are wanted, and deletes those that nobody wants any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import structlog

from reserver.autoscaling.codec import (
    API_VERSION,
    COLLECTION,
    LABEL,
    applied_at,
    path_of,
    read_shape,
    show_buffer,
    show_template,
)
from reserver.base.pacer import Pacer
from reserver.errors import ApiError, ConfigurationError
from reserver.extender.pod_writes import pod_path
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import POD, Metadata, ObjectKind, PartialObject, decode
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.k8s.work_queue import Time, WorkQueue
from reserver.reservations.reservation import Ref
from reserver.scheduling.buffers import Buffer
from reserver.stores.cache import Name

log = structlog.get_logger(__name__)

MOST_POD_BYTES = 65_536
"""How long a pod is at most that has a buffer, as the API server shows it: it is read and copied
between two calls, and its copy counts in no quota of its author."""

_APPLY = "application/apply-patch+yaml"
_AT_ONCE = 4
"""How many buffers are written at once."""

MOST_A_TURN = 20
"""How many buffers are given to be written or deleted in one turn, over all namespaces; each takes
three calls at most. One hold may concern the buffers of all pods that wait."""

_TURN_S = 1.0
"""How long a turn lasts at least, in seconds."""


async def check_served(client: ApiClient) -> None:
    """Refuse to begin where there are no CapacityBuffers.

    Raises:
        ConfigurationError: the API server does not know them.
    """
    try:
        await client.get(COLLECTION, {"limit": "1"})
    except ApiError as exc:
        if exc.is_absent:
            raise ConfigurationError(
                f"--capacity-buffers: the API server knows no CapacityBuffers ({API_VERSION}); "
                "install the CRD that comes with your autoscaler, or leave the option out"
            ) from exc
        log.warning("CapacityBuffers cannot be read yet", why=str(exc))


@dataclass(eq=False, repr=False)
class BufferWriter:
    """Writes CapacityBuffers as they are wanted, and deletes those that nobody wants any more.

    Attributes:
        subject: returns metadata and kind of the object in which a reservation is written.
        changed: called when a buffer has come or gone.
        time: passes for the queue; None for that of the event loop.
        backlog: of the buffers that may have to be written, or deleted, in a turn to come.
        queue: of those that have their turn.
        reflector: shows which there are.
        writes: how many buffers were written or deleted.
    """

    client: ApiClient
    subject: Callable[[Ref], tuple[Metadata, ObjectKind] | None]
    changed: Callable[[], None]
    time: Time | None = None

    def __post_init__(self) -> None:
        """Begin with nothing known."""
        self.backlog = WorkQueue[Name]("CapacityBuffers to come", time=self.time)
        self.queue = WorkQueue[Name]("CapacityBuffers", time=self.time)
        self.reflector = Reflector(
            self.client, COLLECTION, _view(self), {"labelSelector": LABEL}, is_optional=True
        )
        self._wanted: dict[Name, Buffer] = {}
        self._written: dict[Name, Buffer] = {}
        self._there: set[Name] = set()
        self._fault = ""
        self.writes = 0

    def __len__(self) -> int:
        """Return how many buffers there are."""
        return len(self._there)

    def __contains__(self, name: Name) -> bool:
        """Return whether a buffer is there."""
        return name in self._there

    def names(self) -> tuple[Name, ...]:
        """Return which buffers there are."""
        return tuple(self._there)

    def seen(self, name: Name) -> None:
        """Note that a buffer exists; returns at once."""
        if name not in self._there:
            self._there.add(name)
            self.changed()

    def gone(self, name: Name) -> None:
        """Note that a buffer exists no more; returns at once."""
        self._there.discard(name)
        self._written.pop(name, None)
        self.changed()

    def wanted(self, name: Name) -> Buffer | None:
        """Return what a buffer is to be; None if there is to be none."""
        return self._wanted.get(name)

    def end(self, name: Name) -> None:
        """Have a buffer deleted without waiting for its turn; returns at once."""
        self._wanted.pop(name, None)
        self.queue.add(name)

    def want(self, name: Name, wanted: Buffer | None) -> None:
        """Have a buffer be as it is wanted, or be there no more, in its turn; returns at once."""
        if wanted is not None:
            self._wanted[name] = wanted
        else:
            self._wanted.pop(name, None)
        if self._is_due(name):
            self._write_soon(name)

    def keep_only(self, known: Container[Name]) -> None:
        """Have all other buffers deleted: those that a predecessor has left, as a rule."""
        for name in self._there:
            if name not in known:
                self._write_soon(name)

    async def run(self) -> None:
        """Write and delete until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.backlog.passes(self.turn, _TURN_S))
            tasks.create_task(self.queue.run(self._write, _AT_ONCE))

    async def turn(self, pacer: Pacer) -> None:
        """Have some of the backlog written, of each namespace as many.

        Those that are new or go come before those that change, and the oldest first.
        """
        by_namespace: dict[str, list[Name]] = {}
        for name in self.backlog.take_all():
            if self._is_due(name):
                by_namespace.setdefault(name[0], []).append(name)
            await pacer.give_way()
        for names in by_namespace.values():
            names.sort(key=lambda name: name in self._written and name in self._wanted)
        in_turn = filter(None, chain.from_iterable(zip_longest(*by_namespace.values())))
        room = MOST_A_TURN - self.queue.depth  # The API server may be slow.
        for number, name in enumerate(in_turn):
            (self.queue if number < room else self.backlog).add(name)

    def _is_due(self, name: Name) -> bool:
        """Return whether a buffer is not as it is wanted."""
        wanted = self._wanted.get(name)
        return self._written.get(name) != wanted or (wanted is None and name in self._there)

    def _write_soon(self, name: Name) -> None:
        if not self.queue.rests(name, self._wanted.get(name)):
            self.backlog.add(name)

    async def _write(self, names: list[Name]) -> None:
        (name,) = names
        wanted = self._wanted.get(name)
        try:
            if wanted is not None:
                await self._apply(name, wanted)
            else:
                self._written.pop(name, None)
                await self.client.delete(path_of(*name), {"propagationPolicy": "Background"})
        except ApiError as exc:
            if wanted is not None or not exc.is_absent:
                self.queue.failed(name, exc, wanted)
                self._tell(exc)
                return
            self._there.discard(name)
        else:
            self.writes += 1
        self.queue.succeeded(name)
        if self._wanted.get(name) != wanted:
            self.backlog.add(name)

    async def _apply(self, name: Name, wanted: Buffer) -> None:
        """Apply a buffer, and the template that belongs to it."""
        owned = await self._owned(name, wanted)
        if owned is None:
            return  # Its reservation or pod is gone, as a change to come will say.
        owner, kind, shape = owned
        at, template_at = applied_at(*name)
        raw = await self.client.patch(at, show_buffer(wanted, owner, kind), _APPLY)
        made = decode(PartialObject, raw).metadata
        await self.client.patch(template_at, show_template(wanted, made, shape), _APPLY)
        self._there.add(name)
        self._written[name] = wanted

    async def _owned(
        self, name: Name, wanted: Buffer
    ) -> tuple[Metadata, ObjectKind, dict[str, Any] | None] | None:
        """Return the object with which a buffer goes, its kind, and the shape of a pod."""
        if wanted.reservation is not None:
            subject = self.subject(wanted.reservation.ref)
            return (*subject, None) if subject is not None else None
        try:
            raw = await self.client.get(pod_path(wanted.pod.name))
        except ApiError as exc:
            if exc.is_absent:
                return None
            raise
        if len(raw) > MOST_POD_BYTES:
            log.info("pod is too long for a CapacityBuffer", pod=str(wanted.pod.name))
            self._written[name] = wanted  # As far as can be: it is not read again for it.
            return None
        pod, shape = read_shape(raw)
        return (pod, POD, shape) if pod.uid == wanted.pod.uid else None

    def _tell(self, error: ApiError) -> None:
        if str(error) != self._fault:  # One line for one fault, however often it is retried.
            self._fault = str(error)
            grant = "; grant it: scheduler-config/components/capacity-buffers"
            why = self._fault + (grant if error.status == 403 else "")  # noqa: PLR2004 - Forbidden
            log.warning("CapacityBuffer cannot be written, retrying", why=why)


def _view(writer: BufferWriter) -> ObjectView[PartialObject]:
    return ObjectView(
        PartialObject,
        seen=lambda item, _: writer.seen((item.metadata.namespace, item.metadata.name)),
        gone=writer.gone,
        known=writer.names,
    )
