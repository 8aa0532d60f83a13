"""The provisioner: takes each ProvisioningRequest step by step.

Whatever is to be done is done only once the conditions that it follows from are written, by a step
that changes nothing else; who comes after a crash finds conditions that say as much as was done,
and Reservations whose names follow from the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import structlog

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
"""How long a step waits for what no watch tells, in seconds."""

SHOWN_LATE_S = 5.0
"""So long a Reservation may be missed that was held when another Reserver looked, in seconds: views
that are further behind decide nothing (`readiness`)."""

SAY_AGAIN_S = 10.0
"""How long a new message of a request that waits is not written, in seconds."""

_AT_ONCE = 4
"""How many steps are made at once; bindings have the rest of the connections."""


class Provisioner(Listener):
    """Carries out ProvisioningRequests.

    Attributes:
        queue: of the requests that may have a next step.
        reflector: keeps them up to date.
        writes: how many statuses were written.
        subscribers: called with each request of which a condition has become true, and with that.
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
            booking: holds what requests ask for.
            is_up_to_date: waits for what watches are known to have missed, and returns whether
                anything may be decided.
        """
        self._client = client
        self._clock = clock
        self._booking = booking
        self._is_up_to_date = is_up_to_date
        self.queue = WorkQueue[PodName]("provisioning", group=lambda name: name.namespace)
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
        """Note that a reservation may have changed; returns at once."""
        name = self.requests.of(ref)
        if name is not None:
            self.queue.add(name)

    def on_node_changed(self, node: str) -> None:  # noqa: ARG002 - any may help
        """Note that there may be room on some node where there was none; returns at once."""
        for name in self._tried_at:
            self.queue.add(name, LOOK_AGAIN_S)

    async def run(self) -> None:
        """Carry out requests until cancelled; all has been listed once."""
        await self.queue.run(self._work, _AT_ONCE)

    async def _work(self, names: list[PodName]) -> None:
        for name in names:
            await self.step(name)

    async def step(self, name: PodName) -> None:
        """Make the next step of a request; what fails is tried later."""
        with quarantined("provisioning", str(name), partial(self._on_fault, name)):
            try:
                await self._tidy(name)
                known = self.requests.get(name)
                if known is not None:
                    await self._go_on(known)
            except ApiError as exc:
                self._later(name, exc)

    async def _tidy(self, name: PodName) -> None:
        """Release what is left of requests of this name that went."""
        gone = self.requests.gone(name)
        if not gone:
            return
        self._forget(name)
        if all([await self._booking.release(request) for request in gone]):
            self.requests.released(name)
            self.queue.succeeded(name)
        else:
            self.queue.add(name, LOOK_AGAIN_S)

    async def _go_on(self, known: KnownRequest) -> None:
        request, name = known.request, known.request.name
        # As in Bind: a watch that broke may be about to show what has become of Reservations.
        if not await self._is_up_to_date():
            self.queue.add(name, LOOK_AGAIN_S)
            return
        if self.requests.get(name) is not known:
            return  # It was written meanwhile, and is looked at again.
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

    def _look(self, request: ProvisioningRequest) -> BookingObservation:
        """Return what is seen of a request's Reservations; one that was held may be shown late."""
        seen = self._booking.look(request)
        is_held = request.holds(Kind.PROVISIONED) and not request.has_ended
        if is_held and BookingState.ABSENT in seen.holds:
            now = self._clock()
            if now - self._missed_at.setdefault(request.name, now) < SHOWN_LATE_S:
                late = (
                    BookingState.UNSETTLED if h is BookingState.ABSENT else h for h in seen.holds
                )
                return seen._replace(holds=tuple(late))
        return seen

    async def _book(self, known: KnownRequest, seen: BookingObservation) -> None:
        """Try to hold what a request asks for, and say why not."""
        request, name = known.request, known.request.name
        refusal = self._unwritten.pop(name, None)
        if refusal is None:
            left_s = self._tried_at.get(name, 0.0) + LOOK_AGAIN_S - self._clock()
            if left_s > 0:
                self.queue.add(name, min(left_s, LOOK_AGAIN_S))
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
        """Begin to hold what a request asks for; return why not.

        One at a time, and for a quarter of the time at most, however many wait.
        """
        templates = await self._booking.templates(request)
        if isinstance(templates, NoBooking):
            return templates
        async with self._trying:
            # As in Bind: a watch that broke may be about to show that room is taken.
            if not await self._is_up_to_date():
                return None  # It is tried again in a moment.
            pacer = Pacer()
            begun = await self._booking.book(request, templates, pacer)
            await pacer.rest()
        if isinstance(begun, NoBooking):
            return begun
        begun.add_done_callback(partial(self._ended, request.name))
        return None

    def _ended(self, name: PodName, writing: Outcome) -> None:
        """Note that the Reservations of a request were written, or why they were not."""
        if writing.cancelled():
            return
        error = writing.result()
        if error is not None and self.requests.get(name) is not None:
            self._unwritten[name] = refused(error)
        self.queue.add(name)

    def _is_news(self, request: ProvisioningRequest, said: Mapping[Kind, ConditionChange]) -> bool:
        """Return whether a request that waits is to be told so: not each time in other words."""
        before, now = request.said.get(Kind.PROVISIONED), said.get(Kind.PROVISIONED)
        if before is None or now is None or before.reason != now.reason or Kind.FAILED in said:
            return True
        return self._clock() >= self._said_at.get(request.name, 0.0) + SAY_AGAIN_S

    async def _has_written(self, known: KnownRequest, step: StepResult) -> bool:
        """Write conditions if they are others than before; return whether they were."""
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
        self.requests.put(decode(RequestObject, answer))
        for said in now_true:
            log.info("request", name=str(name), condition=said.kind, reason=said.reason)
            for tell in self.subscribers:
                tell(known, said)
        return True

    def _forget(self, name: PodName) -> None:
        for kept in (self._tried_at, self._said_at, self._missed_at, self._unwritten):
            kept.pop(name, None)

    def _later(self, name: PodName, error: ApiError) -> None:
        if error.is_absent and not self.requests.gone(name):
            self.queue.discard(name)  # The watch will show that it is gone.
            return
        fault = advice(error)
        self.queue.failed(name, error, None if error.is_conflict else fault)
        if fault != self._fault and not error.is_conflict:
            log.warning("request cannot go on, retrying", name=str(name), why=fault)
            self._fault = fault

    def _on_fault(self, name: PodName, fault: Fault) -> None:
        """Have a request that could not be judged tried again, later each time."""
        log.error("request cannot be judged", name=str(name), why=str(fault))
        self.queue.failed(name, what=str(fault))


def _view(requests: KnownRequests) -> ObjectView[RequestObject]:
    return ObjectView(
        RequestObject,
        seen=lambda item, _: requests.put(item),
        gone=lambda key: requests.drop(PodName(*key)),
        known=requests.names,
    )
