"""The Reservations of ProvisioningRequests: observes, writes all or none, and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any
from uuid import uuid4

from reserver.base.pacer import Pacer
from reserver.cluster.byte_cache import ByteCache
from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput, ReserverError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.limits import limits_at
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.times import show_moment
from reserver.provisioning.codec import owner_reference
from reserver.provisioning.decide import BookingObservation, BookingState, NoBooking
from reserver.provisioning.model import ConditionReason, ProvisioningRequest
from reserver.provisioning.observe import refs
from reserver.provisioning.template import documents, place, pod_of
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.dry_run import judge_set
from reserver.scheduling.state import State
from reserver.stores.codec import spec_codec
from reserver.stores.entries import Entries
from reserver.stores.object import codec as reservation
from reserver.stores.object.cache import ObjectCache
from reserver.stores.writer import Writer

_REMEMBERED_BYTES = 16 * 2**20
"""Most bytes of cached PodTemplates of waiting requests."""

_MOST_SAID = 300

Document = dict[str, Any]
Outcome = asyncio.Task[ReserverError | None]


@dataclass(eq=False, repr=False)
class Booking:
    """The Reservations that hold room for requests; `clock` gives unix seconds."""

    client: ApiClient
    clock: Callable[[], float]
    state: State
    objects: ObjectCache
    writer: Writer[Any]

    def __post_init__(self) -> None:
        """Begin without cached PodTemplates."""
        self._templates: ByteCache[str, tuple[bytes, ...]] = ByteCache(_REMEMBERED_BYTES)

    def look(self, request: ProvisioningRequest) -> BookingObservation:
        """Return the observation of a request's Reservations."""
        ledger = self.state.ledger
        ledger.advance(self.clock())
        there, why, until, claimed = [], "", 0.0, 0
        for ref in refs(request):
            hold, obstacle = self._hold(request, ref)
            there.append(hold)
            why = why or obstacle
            known = ledger.get(ref) if hold is not BookingState.ABSENT else None
            if known is not None:
                claimed += ledger.claimed(ref)
                until = max(until, known.expires_at or 0.0)
        return BookingObservation(tuple(there), show_moment(until) if until else "", claimed, why)

    def _hold(self, request: ProvisioningRequest, ref: Ref) -> tuple[BookingState, str]:
        """Return the state of a Reservation, and why it is lost; empty if it is not."""
        known, ledger = self.objects.known(ref), self.state.ledger
        if known is None or known.metadata.controller_uid != request.uid:
            is_coming = known is None and self.objects.latest(ref) is not None
            return (BookingState.UNSETTLED if is_coming else BookingState.ABSENT), ""
        if self.objects.is_unfinished(ref):
            return BookingState.UNSETTLED, ""  # A restart deletes an unfinished set.
        written = known.reservation
        if written is None:
            return BookingState.LOST, f"{ref.key} cannot be read: {known.entries.problems[0].error}"
        phase = ledger.phase(ref)
        if phase is Phase.EXPIRED:
            return BookingState.EXPIRED, ""
        if ledger.is_unplaced(ref):
            lost = ledger.obstacle(ref)
            why = f"a node of {ref.key} has gone, and there is no other room: {lost}"
            return (BookingState.LOST, why) if lost else (BookingState.UNSETTLED, "")
        is_written = ledger.placed(written) == written.placed
        is_held = phase is Phase.CLAIMED or (phase is Phase.ACTIVE and not ledger.excess(ref))
        return (BookingState.HELD if is_written and is_held else BookingState.UNSETTLED), ""

    async def templates(self, request: ProvisioningRequest) -> tuple[bytes, ...] | NoBooking:
        """Return the pods of a request's PodTemplates as JSON, or why there is no booking.

        Those before a missing one are cached: a retry does not read megabytes again.

        Raises:
            ApiError: they cannot be read; retry later.
        """
        found = self._templates.get(request.uid) or ()
        path = f"/api/v1/namespaces/{request.name.namespace}/podtemplates"
        for index, each in islice(enumerate(request.pod_sets), len(found), None):
            try:
                template = await self.client.get(f"{path}/{each.template}")
                found = (*found, pod_of(template, place(index, each)))
            except InvalidInput as exc:
                return _invalid(exc)
            except ApiError as exc:
                if not exc.is_absent:
                    raise
                message = f"spec.podSets[{index}]: there is no PodTemplate {each.template} yet"
                return NoBooking(ConditionReason.POD_TEMPLATE_NOT_FOUND, message)
            self._templates.put(request.uid, found, sum(map(len, found)))
        return found

    async def book(
        self, request: ProvisioningRequest, pods: tuple[bytes, ...], pacer: Pacer
    ) -> Outcome | NoBooking:
        """Find room in steps, hold it and begin to write the Reservations, all or none.

        There is no `await` from the last check of the room to the holds.
        """
        try:
            drafts = await pacer.run(self._drafts(request, pods))
        except InvalidInput as exc:
            return _invalid(exc)
        new = [one for one, _ in drafts]
        if refusal := self._obstacle(new):
            return refusal
        verdict = await pacer.run(judge_set(new, self.state, self.clock))
        if verdict.lacks:
            return NoBooking(ConditionReason.CAPACITY_IS_NOT_FOUND, verdict.lacks[0].message)
        if refusal := self._obstacle(new):
            return refusal
        entries = {one.ref.key: Entries((one,)) for one in verdict.reservations}
        texts = {one.ref.key: encode(written).decode() for one, written in drafts}
        where = Ref.of_object(request.name.namespace, "")
        return self.writer.insert(where, texts, entries, {}, owner_reference(request))

    def _obstacle(self, new: Sequence[Reservation]) -> NoBooking | None:
        """Return why Reservations cannot be written, apart from room; None if they can."""
        for one in new:
            if self.objects.latest(one.ref) is not None:
                message = f"there is a Reservation {one.ref.key} of somebody else; delete it"
                return NoBooking(ConditionReason.RESERVATIONS_REFUSED, message)
        if why := self.state.ledger.quotas.trial(new, self.clock()):
            return NoBooking(ConditionReason.QUOTA_EXCEEDED, why)
        return None

    def _drafts(
        self, request: ProvisioningRequest, pods: tuple[bytes, ...]
    ) -> Generator[None, None, list[tuple[Reservation, Document]]]:
        """Return the Reservations to write in steps, as values and as documents.

        Raises:
            InvalidInput: room cannot be held for a PodTemplate.
        """
        now, limits = self.clock(), limits_at(refs(request)[0], self.objects.home)
        drafts = []
        written = yield from documents(request, pods, now, limits)
        for ref, spec in zip(refs(request), written, strict=True):
            yield
            whole = {**spec, "origin": f"{ref}#{uuid4().hex}"}
            drafts.append((spec_codec.read(whole, ref, now, limits), whole))
        return drafts

    async def release(self, request: ProvisioningRequest) -> bool:
        """Delete the Reservations of a request; return whether none is left.

        Raises:
            ApiError: one may still exist; retry later.
        """
        for ref in refs(request):
            known = self.objects.known(ref)
            if known is None or known.metadata.controller_uid != request.uid:
                continue
            options = {"preconditions": {"uid": known.metadata.uid}}
            try:
                await self.client.delete(reservation.path(ref), options)
            except ApiError as exc:
                if not exc.is_absent and exc.status != HTTPStatus.CONFLICT:
                    raise
        return all(hold is BookingState.ABSENT for hold in self.look(request).holds)


def _invalid(error: InvalidInput) -> NoBooking:
    return NoBooking(ConditionReason.INVALID_POD_TEMPLATE, str(error), is_final=True)


def refused(error: ReserverError) -> NoBooking:
    """Return why Reservations were not written, for a condition."""
    message = shorten(str(error), _MOST_SAID)
    is_final = isinstance(error, InvalidInput)
    return NoBooking(ConditionReason.RESERVATIONS_REFUSED, message, is_final=is_final)
