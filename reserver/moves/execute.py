"""Executes the effects of a step of a move: seats and evictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.eviction import Reply, evict, eviction
from reserver.k8s.objects.objects import PartialObject, decode
from reserver.moves import surge_pods
from reserver.moves.effects import (
    Effect,
    EvictPod,
    HandOver,
    HoldSeat,
    MarkLeaving,
    PlaceSeatAnew,
    ReleaseSeat,
    StartCopy,
)
from reserver.moves.manifests import seat
from reserver.moves.model import Move
from reserver.moves.observation import EffectAnswer, EffectResult
from reserver.reservations.reservation import Ref
from reserver.stores.object import codec as reservation
from reserver.stores.object.cache import ObjectCache

log = structlog.get_logger(__name__)

_REQUESTED_BY = "reserver.io/podmove"
_MOST_SAID = 300
"""The characters of an answer that a status repeats."""

_ANSWERS = {
    Reply.ACCEPTED: EffectAnswer.EVICTED,
    Reply.IN_BACKGROUND: EffectAnswer.EVICTED,
    Reply.GONE: EffectAnswer.UNSURE,  # The watch will show it.
    Reply.BLOCKED: EffectAnswer.BLOCKED,
    Reply.REFUSED: EffectAnswer.EVICTION_REFUSED,
    Reply.OVERTAKEN: EffectAnswer.UNSURE,
    Reply.UNSURE: EffectAnswer.UNSURE,
}


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out effects.

    Attributes:
        unsuited: requests a new place for a seat, within its move's target or anywhere.
    """

    client: ApiClient
    seats: ObjectCache
    unsuited: Callable[[Ref, bool], None]

    async def execute(self, move: Move, effect: Effect) -> EffectResult:
        """Execute an effect; a repetition is harmless.

        Raises:
            ApiError: the effect may not have been executed; retry it.
        """
        match effect:
            case HoldSeat():
                return await self._hold(move, effect)
            case PlaceSeatAnew():
                self.unsuited(Ref.of_object(*effect.seat), effect.anywhere)
                return EffectResult()
            case EvictPod():
                return await self._evict(move, effect)
            case ReleaseSeat():
                return await self._release(effect)
            case StartCopy() | MarkLeaving() | HandOver():
                return await surge_pods.carry_out(self.client, move, effect)

    async def _hold(self, move: Move, hold: HoldSeat) -> EffectResult:
        namespace, name = hold.like
        pod = await self.client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        if decode(PartialObject, pod).metadata.uid != hold.uid:
            return EffectResult()  # The watch will show the deletion.
        try:
            await self.client.create(reservation.collection(namespace), seat(move, hold, pod))
        except InvalidInput as exc:
            return EffectResult(EffectAnswer.SEAT_REFUSED, shorten(str(exc), _MOST_SAID))
        except ApiError as exc:
            if exc.is_conflict:
                return EffectResult()  # It exists, and the watch will show its owner.
            if not exc.is_definite:
                raise
            return EffectResult(EffectAnswer.SEAT_REFUSED, shorten(str(exc), _MOST_SAID))
        log.info("seat written", move=str(move.name), seat=hold.seat.name)
        return EffectResult()

    async def _evict(self, move: Move, what: EvictPod) -> EffectResult:
        reason = f"moved by the PodMove {move.name.name}"
        annotations = {"reason": reason, "requested-by": _REQUESTED_BY}
        request = eviction(what.pod, what.uid, what.grace_period_s, annotations)
        reply, said = await evict(self.client, request)
        log.info(
            "eviction sent", move=str(move.name), pod=str(what.pod), reply=reply.name, why=said
        )
        return EffectResult(_ANSWERS[reply], shorten(said, _MOST_SAID))

    async def _release(self, release: ReleaseSeat) -> EffectResult:
        ref = Ref.of_object(*release.seat)
        known = self.seats.known(ref)
        if known is not None:
            options = {"preconditions": {"uid": known.metadata.uid}}
            try:
                await self.client.delete(reservation.path(ref), options)
            except ApiError as exc:
                if not exc.is_absent and exc.status != HTTPStatus.CONFLICT:
                    raise
        return EffectResult()
