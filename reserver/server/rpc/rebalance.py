"""RebalanceService: plans, made beside this process and told in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol

import grpc

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.pacer import Pacer
from reserver.rebalance.modes import Compat
from reserver.rebalance.pending import Slots
from reserver.rebalance.plan import Kept, Landing, Move
from reserver.reservations.reservation import Ref
from reserver.server.rpc.refusal import Refusal
from reserver.v1 import rebalance_pb2 as pb
from reserver.v1.rebalance_pb2_grpc import RebalanceServiceServicer
from reserver.wire import grpcform
from reserver.wire.k8s import names
from reserver.wire.rebalance.channel import Planned, Room
from reserver.wire.rebalance.document import MOST_BYTES
from reserver.wire.spec import specform

MOST_WANTED = 500
"""For how many pods and slots room is asked at most."""

Aio = grpc.aio.ServicerContext[Any, Any]

_WAYS = {
    pb.JUDGING_UNSPECIFIED: Compat.PLAN,
    pb.JUDGING_SOUND: Compat.PLAN,
    pb.JUDGING_UPSTREAM: Compat.UPSTREAM,
}


class Planning(Protocol):
    """Makes plans (`reserver.rebalance_process.Planner`)."""

    def plan(self, policy: str, compat: Compat, room: Room | None) -> AsyncGenerator[Planned]:
        """Yield what is being done, and then the plan in parts."""


class Rebalance(RebalanceServiceServicer):
    """RebalanceService, one plan at a time: each takes a core, and memory for the whole cluster."""

    def __init__(self, planning: Planning, clock: Callable[[], float], namespace: str) -> None:
        """Serve plans.

        Args:
            planning: makes them.
            clock: unix seconds.
            namespace: of the reservations that room is asked for.
        """
        self._planning = planning
        self._clock = clock
        self._namespace = namespace
        self._is_busy = False

    async def Plan(  # noqa: N802
        self,
        request: pb.PlanRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.PlanResponse]:
        """Plan by a policy, or room."""
        makes_room = request.HasField("make_room")
        if not (request.policy or makes_room):
            remedy = "send the text of a DeschedulerPolicy, or makeRoom"
            raise InvalidInput("policy", "is empty", remedy)
        length = len(request.policy.encode())
        if length > MOST_BYTES:
            raise InvalidInput(
                "policy", f"{length} bytes are too many", f"the most is {MOST_BYTES}"
            )
        if request.judging not in _WAYS:
            raise InvalidInput("judging", f"{request.judging} is unknown", "send SOUND or UPSTREAM")
        if makes_room and _WAYS[request.judging] is not Compat.PLAN:
            raise InvalidInput("judging", "UPSTREAM makes no room", "send SOUND, or no makeRoom")
        room = await self._room(request.make_room) if makes_room else None
        if self._is_busy:
            message = "another plan is being made; try again once it is done"
            raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY", message)
        self._is_busy = True
        try:
            plan = self._planning.plan(request.policy, _WAYS[request.judging], room)
            async with aclosing(plan) as parts:
                async for part in parts:
                    _refuse(part)
                    yield _message(part)
                    if part.complete:
                        return
            message = "the process that plans has ended; its log says why"
            raise Refusal(grpc.StatusCode.UNAVAILABLE, "NOT_READY", message)
        finally:
            self._is_busy = False

    async def _room(self, asked: pb.MakeRoom) -> Room:
        """Return for whom room is asked.

        Raises:
            InvalidInput: a field is wrong.
        """
        with under("makeRoom"):
            _check_count(asked)
            pods = tuple(PodName(each.namespace, each.name) for each in asked.pods)
            if asked.reservations:
                grpcform.check_set([each.spec for each in asked.reservations])
            slots = await self._slots(asked.reservations)
        return Room(pods=pods, slots=slots, together=asked.together)

    async def _slots(self, asked: Sequence[pb.WantedReservation]) -> tuple[Slots, ...]:
        asked_at, pacer = self._clock(), Pacer()
        found: dict[str, Slots] = {}
        for index, each in enumerate(asked):
            path = f"reservations[{index}]"
            names.check_subdomain(each.name, f"{path}.name", "a reservation's name")
            if each.name in found:
                problem = f"{each.name} is given twice"
                raise InvalidInput(f"{path}.name", problem, "give each name once")
            with under(f"{path}.spec"):
                ref = Ref.of_object(self._namespace, each.name)
                written = grpcform.write(each.spec, asked_at)
                reservation = specform.read(written, ref, asked_at)
            found[each.name] = Slots.of(reservation, each.name)
            await pacer.give_way()
        return tuple(found.values())


def _check_count(asked: pb.MakeRoom) -> None:
    """Refuse too many pods and slots, before any of it is read."""
    count = len(asked.pods) + sum(max(1, each.spec.slots) for each in asked.reservations)
    if count > MOST_WANTED:
        problem = f"{count} pods and slots are too many"
        raise InvalidInput("", problem, f"ask for {MOST_WANTED} at most")


def _refuse(part: Planned) -> None:
    """Refuse the call if there is to be no plan."""
    if part.problems:
        field, problem = part.problems[0]
        code = grpc.StatusCode.INVALID_ARGUMENT
        raise Refusal(code, "INVALID_FIELD", f"{field}: {problem}", part.problems)
    if part.is_refused:
        code = grpc.StatusCode.FAILED_PRECONDITION
        raise Refusal(code, "REFUSED_BY_API_SERVER", part.failure)
    if part.failure:
        raise Refusal(grpc.StatusCode.UNAVAILABLE, "API_SERVER", part.failure)


def _message(part: Planned) -> pb.PlanResponse:
    return pb.PlanResponse(
        progress=part.progress,
        moves=map(_move, part.moves),
        kept=map(_kept, part.kept),
        more_kept=part.more_kept,
        landings=map(_landing, part.landings),
        fewest_moves=part.fewest_moves,
        notes=part.notes,
        warnings=part.warnings,
        complete=part.complete,
    )


def _move(move: Move) -> pb.PlannedMove:
    return pb.PlannedMove(
        namespace=move.pod.namespace,
        pod=move.pod.name,
        uid=move.uid,
        from_node=move.source,
        to_node=move.target or "",
        strategy=move.strategy,
        profile=move.profile,
        reason=move.reason,
        improves=move.improves,
    )


def _landing(landing: Landing) -> pb.Landing:
    return pb.Landing(namespace=landing.pod.namespace, pod=landing.pod.name, node=landing.node)


def _kept(kept: Kept) -> pb.KeptPod:
    return pb.KeptPod(
        namespace=kept.pod.namespace,
        pod=kept.pod.name,
        node=kept.node,
        strategy=kept.strategy,
        profile=kept.profile,
        why=kept.why,
    )
