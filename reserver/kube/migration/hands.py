"""Carries out the effects of a step of a move: writes, evictions, events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

import structlog

from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput
from reserver.kube.api.client import ApiClient
from reserver.kube.api.eviction import Reply, evict, eviction
from reserver.kube.stores.object.cache import ObjectCache
from reserver.migration.effects import Effect, Evict, Hold, Release, Reseat
from reserver.migration.move import Move
from reserver.migration.seen import Answer
from reserver.reservations.reservation import Ref
from reserver.wire.k8s.objects import decode
from reserver.wire.k8s.watch import PartialObject
from reserver.wire.migration.seat import seat
from reserver.wire.spec import object as reservation

log = structlog.get_logger(__name__)

_REQUESTED_BY = "reserver.io/podmove"
_MOST_SAID = 300
"""How many characters of an answer a status repeats."""

_ANSWERS = {
    Reply.ACCEPTED: Answer.EVICTED,
    Reply.IN_BACKGROUND: Answer.EVICTED,
    Reply.GONE: Answer.UNSURE,  # The watch will show it.
    Reply.BLOCKED: Answer.BLOCKED,
    Reply.REFUSED: Answer.EVICTION_REFUSED,
    Reply.OVERTAKEN: Answer.UNSURE,
    Reply.UNSURE: Answer.UNSURE,
}


class Told(NamedTuple):
    """The API server's answer, for the next step; None where the watch will show it."""

    answer: Answer | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Hands:
    """Carries out effects.

    Attributes:
        client: of the API server.
        seats: the Reservation objects.
        unsuited: has one placed anew, within its move's target or anywhere.
    """

    client: ApiClient
    seats: ObjectCache
    unsuited: Callable[[Ref, bool], None]

    async def carry_out(self, move: Move, effect: Effect) -> Told:
        """Carry out an effect; it does no harm if it was carried out before.

        Raises:
            ApiError: it may not have been carried out; it is to be tried again.
        """
        match effect:
            case Hold():
                return await self._hold(move, effect)
            case Reseat():
                self.unsuited(Ref.of_object(*effect.seat), effect.anywhere)
                return Told()
            case Evict():
                return await self._evict(move, effect)
            case Release():
                return await self._release(effect)

    async def _hold(self, move: Move, hold: Hold) -> Told:
        namespace, name = hold.like
        pod = await self.client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        if decode(PartialObject, pod).metadata.uid != hold.uid:
            return Told()  # The watch will show that it is gone.
        try:
            await self.client.create(reservation.collection(namespace), seat(move, hold, pod))
        except InvalidInput as exc:
            return Told(Answer.SEAT_REFUSED, shorten(str(exc), _MOST_SAID))
        except ApiError as exc:
            if exc.is_conflict:
                return Told()  # It is there, and the watch will show whose it is.
            if not exc.is_definite:
                raise
            return Told(Answer.SEAT_REFUSED, shorten(str(exc), _MOST_SAID))
        log.info("seat written", move=str(move.name), seat=hold.seat.name)
        return Told()

    async def _evict(self, move: Move, what: Evict) -> Told:
        reason = f"moved by the PodMove {move.name.name}"
        annotations = {"reason": reason, "requested-by": _REQUESTED_BY}
        request = eviction(what.pod, what.uid, what.grace_period_s, annotations)
        reply, said = await evict(self.client, request)
        log.info(
            "eviction sent", move=str(move.name), pod=str(what.pod), reply=reply.name, why=said
        )
        return Told(_ANSWERS[reply], shorten(said, _MOST_SAID))

    async def _release(self, release: Release) -> Told:
        ref = Ref.of_object(*release.seat)
        known = self.seats.known(ref)
        if known is not None:
            options = {"preconditions": {"uid": known.metadata.uid}}
            try:
                await self.client.delete(reservation.path(ref), options)
            except ApiError as exc:
                if not exc.is_absent and exc.status != HTTPStatus.CONFLICT:
                    raise
        return Told()
