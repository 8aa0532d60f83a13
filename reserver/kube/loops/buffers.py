"""Writes a CapacityBuffer for each reservation that waits for room, and takes it back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import structlog

from reserver.errors import ApiError, ConfigurationError
from reserver.kube.api.client import ApiClient
from reserver.kube.loops.queue import Time, WorkQueue
from reserver.kube.stores.cache import Name
from reserver.kube.watch.reflector import Reflector
from reserver.kube.watch.views import ObjectView
from reserver.pacer import Pacer
from reserver.quarantine import quarantined
from reserver.reservations.reservation import Ref
from reserver.scheduling.buffers import MOST_BUFFERS, Buffer, Need, Sight, buffer, need
from reserver.scheduling.state import State
from reserver.wire.capacitybuffer import (
    API_VERSION,
    COLLECTION,
    LABEL,
    applied_at,
    name_for,
    path_of,
    show_buffer,
    show_template,
)
from reserver.wire.k8s.objects import Metadata, decode
from reserver.wire.k8s.watch import PartialObject

log = structlog.get_logger(__name__)

AFTER_S = 1.0
"""How long a reservation waits for its place before an autoscaler is asked, in seconds."""

_APPLY = "application/apply-patch+yaml"
_AGAIN = ""
_AT_ONCE = 4
"""How many buffers are written at once."""


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


class Buffers:
    """Writes a CapacityBuffer for each reservation that waits for room, and takes it back.

    Attributes:
        queue: of reservations to look at; a string has all that wait looked at again.
        unwritten: the buffers that may have to be written, or deleted.
        reflector: shows which there are.
        writes: how many buffers were written or deleted.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        subject: Callable[[Ref], tuple[Metadata, str] | None],
        time: Time | None = None,
    ) -> None:
        """Begin with nothing known.

        Args:
            client: of the API server.
            clock: unix seconds.
            subject: returns metadata and kind of the object in which a reservation is written.
            time: passes for the queues; None for that of the event loop.
        """
        self._client = client
        self._clock = clock
        self._subject = subject
        self.queue = WorkQueue[Ref | str]("buffers", time=time)
        self.unwritten = WorkQueue[Name]("CapacityBuffers", time=time)
        self.reflector = Reflector(
            client, COLLECTION, _view(self), {"labelSelector": LABEL}, is_optional=True
        )
        self._waiting: dict[Ref, Name] = {}
        self._wanted: dict[Name, Buffer] = {}
        self._written: dict[Name, Buffer] = {}
        self._there: set[Name] = set()
        self._fault = ""
        self.writes = 0

    def __len__(self) -> int:
        """Return how many buffers there are."""
        return len(self._there)

    def touched(self, ref: Ref) -> None:
        """Note that a reservation may wait for room now, or no longer; returns at once."""
        self.queue.add(ref, AFTER_S)

    def changed(self) -> None:
        """Note that some node has changed; returns at once."""
        if self._waiting:
            self.queue.add(_AGAIN, AFTER_S)

    def names(self) -> tuple[Name, ...]:
        """Return which buffers there are."""
        return tuple(self._there)

    def seen(self, name: Name) -> None:
        """Note that a buffer exists; returns at once."""
        if name not in self._there:
            self._there.add(name)
            self.queue.add(_AGAIN, AFTER_S)

    def gone(self, name: Name) -> None:
        """Note that a buffer exists no more; returns at once."""
        self._there.discard(name)
        self._written.pop(name, None)
        self.queue.add(_AGAIN, AFTER_S)

    async def run(self, state: State) -> None:
        """Write buffers until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run())
            await self.reflector.synced.wait()
            await self.begin(state, Pacer())
            tasks.create_task(self.write())
            tasks.create_task(self.queue.passes(partial(self.look, state), AFTER_S))

    async def begin(self, state: State, pacer: Pacer) -> None:
        """Have all reservations looked at: what a predecessor has left is known only by them."""
        for ref in state.ledger.refs():
            self.queue.add(ref)
            await pacer.give_way()
        self.queue.add(_AGAIN)

    async def look(self, state: State, pacer: Pacer) -> None:
        """Decide which buffers there should be now."""
        await pacer.run(state.ledger.advancing(self._clock()))
        for ref in self.queue.take_all():
            if isinstance(ref, Ref) and ref not in self._waiting:
                with quarantined("buffer", ref):
                    if need(ref, state) is not Need.NOTHING:
                        self._waiting[ref] = (ref.namespace, name_for(ref))
                await pacer.give_way()
        sight, numbers = Sight(), Counter[str]()
        for ref in tuple(self._waiting):
            with quarantined("buffer", ref):
                self._decide(ref, state, sight, numbers)
            if await pacer.give_way():
                sight = Sight()
        for name in self._there.difference(self._waiting.values()):
            if not self.unwritten.rests(name):
                self.unwritten.add(name)

    def _decide(self, ref: Ref, state: State, sight: Sight, numbers: Counter[str]) -> None:
        """Decide whether a reservation should have a buffer, and which."""
        name, needed = self._waiting[ref], need(ref, state)
        if needed is Need.PATIENCE and name in self._there:
            return  # Without it an autoscaler might remove the node before it is kept.
        wanted = buffer(ref, state, sight) if numbers[ref.namespace] < MOST_BUFFERS else None
        if wanted is not None:
            numbers[ref.namespace] += 1
            self._wanted[name] = wanted
        else:
            self._wanted.pop(name, None)
        if needed is not Need.ROOM:
            del self._waiting[ref]
        wanted = self._wanted.get(name)
        if wanted != self._written.get(name) and not self.unwritten.rests(name, wanted):
            self.unwritten.add(name)

    async def write(self) -> None:
        """Write and delete until cancelled."""
        await self.unwritten.run(self._write, _AT_ONCE)

    async def _write(self, names: list[Name]) -> None:
        (name,) = names
        wanted = self._wanted.get(name)
        try:
            if wanted is not None:
                await self._apply(name, wanted)
            else:
                self._written.pop(name, None)
                await self._client.delete(path_of(*name), {"propagationPolicy": "Background"})
        except ApiError as exc:
            if wanted is not None or not exc.is_absent:
                self.unwritten.failed(name, exc, wanted)
                self._tell(exc)
                return
            self._there.discard(name)
        else:
            self.writes += 1
        self.unwritten.succeeded(name)
        if self._wanted.get(name) != wanted:
            self.unwritten.add(name)

    async def _apply(self, name: Name, wanted: Buffer) -> None:
        """Apply a buffer, and the template that belongs to it."""
        subject = self._subject(wanted.reservation.ref)
        if subject is None:
            return  # Its reservation is gone, as a change to come will say.
        at, template_at = applied_at(*name)
        raw = await self._client.patch(at, show_buffer(wanted, *subject), _APPLY)
        made = decode(PartialObject, raw).metadata
        await self._client.patch(template_at, show_template(wanted, made), _APPLY)
        self._there.add(name)
        self._written[name] = wanted

    def _tell(self, error: ApiError) -> None:
        if str(error) != self._fault:  # One line for one fault, however often it is retried.
            self._fault = str(error)
            grant = "; grant it: scheduler-config/components/capacity-buffers"
            why = self._fault + (grant if error.status == 403 else "")  # noqa: PLR2004 - Forbidden
            log.warning("CapacityBuffer cannot be written, retrying", why=why)


def _view(buffers: Buffers) -> ObjectView[Metadata]:
    return ObjectView(
        read=lambda raw: decode(PartialObject, raw).metadata,
        seen=lambda item, _: buffers.seen((item.namespace, item.name)),
        gone=buffers.gone,
        known=buffers.names,
    )
