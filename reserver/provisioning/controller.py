"""The provisioner: carries out each ProvisioningRequest in steps.

An effect is executed only once the conditions that it follows from are written, by a step that
changes nothing else. So after a crash the conditions show at least as much as was done, and the
names of the Reservations follow from the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import structlog

from reserver.base.clock import is_ahead
from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import PodName
from reserver.errors import ApiError, Fault
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.k8s.work_queue import WorkQueue
from reserver.provisioning.booking import Booking, Outcome, refused
from reserver.provisioning.codec import (
    COLLECTION,
    RequestObject,
    path,
    show_conditions,
    status_patch,
)
from reserver.provisioning.decide import (
    BookingObservation,
    BookingState,
    NoBooking,
    StepResult,
    advance,
)
from reserver.provisioning.model import ConditionChange, Kind, ProvisioningRequest
from reserver.provisioning.observe import KnownRequest, KnownRequests
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref

log = structlog.get_logger(__name__)

LOOK_AGAIN_S = 1.0
"""Seconds to the next look at a dependency that no watch shows."""

SHOWN_LATE_S = 5.0
"""Seconds for which a missing Reservation of a provisioned request may only be late in the watch:
views that lag more decide nothing (`readiness`)."""

SAY_AGAIN_S = 10.0
"""Least seconds between writes of a waiting request's messages with the same reason."""

_AT_ONCE = 4
"""Concurrent steps; bindings have the rest of the connections."""


class Provisioner(Listener):
    """Carries out ProvisioningRequests.

    Attributes:
        queue: the requests that may have a next step.
        reflector: the watch of the requests.
        writes: statuses written so far.
        subscribers: called with a request and its condition for each that has become true.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        booking: Booking,
        is_up_to_date: Callable[[], Awaitable[bool]],
    ) -> None:
        """Begin without requests.

        Args:
            clock: unix seconds.
            booking: holds room for requests.
            is_up_to_date: waits until the watches have caught up; returns whether decisions are
                allowed.
        """
        self._client = client
        self._clock = clock
        self._booking = booking
        self._is_up_to_date = is_up_to_date
        self.queue = WorkQueue[PodName]("provisioning", group=lambda name: name.namespace, most=1)
        self.requests = KnownRequests(self.queue.add)
        self.reflector = Reflector(client, COLLECTION, _view(self.requests), is_optional=True)
        self._tried_at: dict[PodName, float] = {}
        self._said_at: dict[PodName, float] = {}
        self._missed_at: dict[PodName, float] = {}
        self._unwritten: dict[PodName, NoBooking] = {}
        self._trying = asyncio.Lock()
        self.subscribers: list[Callable[[KnownRequest, ConditionChange], None]] = []
        self.writes = 0
        self._fault = ""

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue the request of a changed reservation; returns at once."""
        name = self.requests.of(ref)
        if name is not None:
            self.queue.add(name)

    def on_node_changed(self, node: str) -> None:  # noqa: ARG002 - any node may have room
        """Queue the waiting requests, as a node may have room; returns at once."""
        for name in self._tried_at:
            self.queue.add(name, LOOK_AGAIN_S)

    async def run(self) -> None:
        """Carry out requests until cancelled; call after the first lists."""
        await self.queue.run(self._work, _AT_ONCE)

    async def _work(self, names: list[PodName]) -> None:
        for name in names:
            await self.step(name)

    async def step(self, name: PodName) -> None:
        """Make the next step of a request; a failed step is retried later."""
        with quarantined("provisioning", str(name), partial(self._on_fault, name)):
            try:
                await self._tidy(name)
                known = self.requests.get(name)
                if known is not None:
                    await self._go_on(known)
            except ApiError as exc:
                self._later(name, exc)

    async def _tidy(self, name: PodName) -> None:
        """Release the Reservations of deleted requests of this name."""
        gone = self.requests.gone(name)
        if not gone:
            return
        self._forget(name)
        if all([await self._booking.release(request) for request in gone]):
            self.requests.released(name, gone)
            self.queue.succeeded(name)
            if self.requests.gone(name):  # Another of the name was deleted meanwhile.
                self.queue.add(name)
        else:
            self.queue.add(name, LOOK_AGAIN_S)

    async def _go_on(self, known: KnownRequest) -> None:
        request, name = known.request, known.request.name
        # As in Bind: a watch that broke may be about to show changes of Reservations.
        if not await self._is_up_to_date():
            self.queue.add(name, LOOK_AGAIN_S)
            return
        if self.requests.get(name) is not known:
            return  # The request was written meanwhile, and is queued again.
        seen = self._look(request)
        step = advance(request, seen)
        if await self._has_written(known, step):
            return
        if step.releases:
            await self._booking.release(request)
            self._tried_at[name] = self._clock()
            self.queue.add(name, LOOK_AGAIN_S)
        elif step.books:
            await self._book(known, seen)
        elif BookingState.UNSETTLED in seen.holds:
            self.queue.add(name, LOOK_AGAIN_S)
        else:
            self._forget(name)
            self.queue.succeeded(name)
            if request.has_ended:
                self.requests.ended(known)

    def _look(self, request: ProvisioningRequest) -> BookingObservation:
        """Return the observation of a request's Reservations; a missing one may be shown late."""
        seen = self._booking.look(request)
        is_held = request.holds(Kind.PROVISIONED) and not request.has_ended
        if is_held and BookingState.ABSENT in seen.holds:
            now = self._clock()
            if abs(now - self._missed_at.setdefault(request.name, now)) < SHOWN_LATE_S:
                late = (
                    BookingState.UNSETTLED if h is BookingState.ABSENT else h for h in seen.holds
                )
                return seen._replace(holds=tuple(late))
        return seen

    async def _book(self, known: KnownRequest, seen: BookingObservation) -> None:
        """Try to hold room for a request; write why not."""
        request, name = known.request, known.request.name
        refusal = self._unwritten.pop(name, None)
        if refusal is None:
            again, now = self._tried_at.get(name, 0.0) + LOOK_AGAIN_S, self._clock()
            if is_ahead(again, now, longest_s=LOOK_AGAIN_S):
                self.queue.add(name, again - now)
                return
            refusal = await self._try(request)
            self._tried_at[name] = self._clock()
        if refusal is None:
            self.queue.add(name)
            return
        step = advance(request, seen._replace(refusal=refusal))
        self.queue.failed(name, what=refusal.reason)
        if self._is_news(request, step.said):
            self._said_at[name] = self._clock()
            await self._has_written(known, step)

    async def _try(self, request: ProvisioningRequest) -> NoBooking | None:
        """Begin to hold room for a request; return why not, or None.

        One request at a time, with at most a quarter of the process's time, however many wait.
        """
        templates = await self._booking.templates(request)
        if isinstance(templates, NoBooking):
            return templates
        async with self._trying:
            # As in Bind: a watch that broke may be about to show that room is taken.
            if not await self._is_up_to_date():
                return None  # It is retried in a moment.
            pacer = Pacer()
            begun = await self._booking.book(request, templates, pacer)
            await pacer.rest()
        if isinstance(begun, NoBooking):
            return begun
        begun.add_done_callback(partial(self._ended, request.name))
        return None

    def _ended(self, name: PodName, writing: Outcome) -> None:
        """Queue a request after the write of its Reservations, with the error if it failed."""
        if writing.cancelled():
            return
        error = writing.result()
        if error is not None and self.requests.get(name) is not None:
            self._unwritten[name] = refused(error)
        self.queue.add(name)

    def _is_news(self, request: ProvisioningRequest, said: Mapping[Kind, ConditionChange]) -> bool:
        """Return whether a waiting request's new conditions are to be written now."""
        before, now = request.said.get(Kind.PROVISIONED), said.get(Kind.PROVISIONED)
        if before is None or now is None or before.reason != now.reason or Kind.FAILED in said:
            return True
        return abs(self._clock() - self._said_at.get(request.name, 0.0)) >= SAY_AGAIN_S

    async def _has_written(self, known: KnownRequest, step: StepResult) -> bool:
        """Write conditions if they have changed; return whether they were written."""
        if step.said == known.request.said:
            return False
        metadata, name = known.metadata, known.request.name
        conditions = show_conditions(
            step.said, known.conditions, metadata.generation, self._clock()
        )
        answer = await self._client.patch(
            f"{path(name)}/status", status_patch(metadata, conditions)
        )
        self.writes += 1
        self._fault = ""
        now_true = [
            said for kind, said in step.said.items() if said.holds and not known.request.holds(kind)
        ]
        self.requests.answered(known, decode(RequestObject, answer))
        for said in now_true:
            log.info("request", name=str(name), condition=said.kind, reason=said.reason)
            for notify in self.subscribers:
                notify(known, said)
        return True

    def _forget(self, name: PodName) -> None:
        for kept in (self._tried_at, self._said_at, self._missed_at, self._unwritten):
            kept.pop(name, None)

    def _later(self, name: PodName, error: ApiError) -> None:
        if error.is_absent and not self.requests.gone(name):
            self.queue.discard(name)  # The watch will show the deletion.
            return
        fault = advice(error)
        self.queue.failed(name, error, None if error.is_conflict else fault)
        if fault != self._fault and not error.is_conflict:
            log.warning("request cannot go on, retrying", name=str(name), why=fault)
            self._fault = fault

    def _on_fault(self, name: PodName, fault: Fault) -> None:
        """Retry a request whose step raised a fault, with back-off."""
        log.error("request cannot be judged", name=str(name), why=str(fault))
        self.queue.failed(name, what=str(fault))


def _view(requests: KnownRequests) -> ObjectView[RequestObject]:
    return ObjectView(
        RequestObject,
        seen=lambda item, _: requests.put(item),
        gone=lambda key: requests.drop(PodName(*key)),
        known=requests.names,
    )
