"""Writes the desired CapacityBuffers, and deletes all others."""

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
"""Most bytes of the JSON of a pod that gets a buffer: Reserver parses and copies the pod in one
step, and no quota of the pod's author counts the copy."""

_APPLY = "application/apply-patch+yaml"
_AT_ONCE = 4
"""Most buffer writes in flight."""

MOST_A_TURN = 20
"""Most buffers that one turn writes or deletes over all namespaces, with three calls at most for
each. One hold may change the buffers of all waiting pods."""

_TURN_S = 1.0
"""Least seconds between the starts of two turns."""


async def check_served(client: ApiClient) -> None:
    """Refuse to start if the API server serves no CapacityBuffers.

    Raises:
        ConfigurationError: the API server does not serve them.
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
    """Writes the desired CapacityBuffers, and deletes all others.

    Attributes:
        subject: returns metadata and kind of the object in which a reservation is written.
        changed: called after a buffer has been created or deleted.
        time: the queues' clock, in seconds; None uses the event loop's clock.
        backlog: the buffers that may have to be written or deleted in a coming turn.
        queue: the buffers of the current turn.
        reflector: the watch of the buffers.
        writes: buffers written or deleted so far.
    """

    client: ApiClient
    subject: Callable[[Ref], tuple[Metadata, ObjectKind] | None]
    changed: Callable[[], None]
    time: Time | None = None

    def __post_init__(self) -> None:
        """Begin without buffers."""
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
        """Return the number of existing buffers."""
        return len(self._there)

    def __contains__(self, name: Name) -> bool:
        """Return whether a buffer exists."""
        return name in self._there

    def names(self) -> tuple[Name, ...]:
        """Return the names of the existing buffers."""
        return tuple(self._there)

    def seen(self, name: Name) -> None:
        """Record that a buffer exists; returns at once."""
        if name not in self._there:
            self._there.add(name)
            self.changed()

    def gone(self, name: Name) -> None:
        """Record that a buffer is deleted; returns at once."""
        self._there.discard(name)
        self._written.pop(name, None)
        self.changed()

    def wanted(self, name: Name) -> Buffer | None:
        """Return the desired buffer of a name; None if no buffer is desired."""
        return self._wanted.get(name)

    def end(self, name: Name) -> None:
        """Queue a buffer's deletion ahead of the backlog; returns at once."""
        self._wanted.pop(name, None)
        self.queue.add(name)

    def want(self, name: Name, wanted: Buffer | None) -> None:
        """Set the desired buffer of a name (None: none), for a coming turn; returns at once."""
        if wanted is not None:
            self._wanted[name] = wanted
        else:
            self._wanted.pop(name, None)
        if self._is_due(name):
            self._write_soon(name)

    def keep_only(self, known: Container[Name]) -> None:
        """Queue the deletion of all other buffers, which a previous leader left as a rule."""
        for name in self._there:
            if name not in known:
                self._write_soon(name)

    async def run(self) -> None:
        """Write and delete until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.backlog.passes(self.turn, _TURN_S))
            tasks.create_task(self.queue.run(self._write, _AT_ONCE))

    async def turn(self, pacer: Pacer) -> None:
        """Move buffers from the backlog to the queue, one of each namespace in turn.

        In a namespace creations and deletions come before updates; the oldest entries first.
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
        """Return whether a buffer differs from the desired buffer."""
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
                self._report(exc)
                return
            self._there.discard(name)
        else:
            self.writes += 1
        self.queue.succeeded(name)
        if self._wanted.get(name) != wanted:
            self.backlog.add(name)

    async def _apply(self, name: Name, wanted: Buffer) -> None:
        """Apply a buffer and its PodTemplate."""
        owned = await self._owned(name, wanted)
        if owned is None:
            return  # Its reservation or pod is gone, as a coming event reports.
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
        """Return metadata and kind of a buffer's owner, and a pod's template (None for holds)."""
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
            self._written[name] = wanted  # Counts as written, so that the pod is not read again.
            return None
        pod, shape = read_shape(raw)
        return (pod, POD, shape) if pod.uid == wanted.pod.uid else None

    def _report(self, error: ApiError) -> None:
        if str(error) != self._fault:  # One line for each fault, not for each retry.
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
