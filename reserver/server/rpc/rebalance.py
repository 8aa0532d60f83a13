"""RebalanceService: plans, made beside this process and told in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

import grpc

from reserver.errors import InvalidInput
from reserver.rebalance.plan import Kept, Move
from reserver.rebalance.ways import Compat
from reserver.server.rpc.refusal import Refusal
from reserver.v1 import rebalance_pb2 as pb
from reserver.v1.rebalance_pb2_grpc import RebalanceServiceServicer
from reserver.wire.rebalance.channel import Planned
from reserver.wire.rebalance.document import MOST_BYTES

Aio = grpc.aio.ServicerContext[Any, Any]

_WAYS = {
    pb.JUDGING_UNSPECIFIED: Compat.SOUND,
    pb.JUDGING_SOUND: Compat.SOUND,
    pb.JUDGING_UPSTREAM: Compat.UPSTREAM,
}


class Planning(Protocol):
    """Makes plans (`reserver.rebalance_process.Planner`)."""

    def plan(self, policy: str, compat: Compat) -> AsyncGenerator[Planned]:
        """Yield what is being done, and then the plan in parts."""


class Rebalance(RebalanceServiceServicer):
    """RebalanceService, one plan at a time: each takes a core, and memory for the whole cluster."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning
        self._is_busy = False

    async def Plan(  # noqa: N802
        self,
        request: pb.PlanRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.PlanResponse]:
        """Plan by a policy."""
        if not request.policy:
            raise InvalidInput("policy", "is empty", "send the text of a DeschedulerPolicy")
        length = len(request.policy.encode())
        if length > MOST_BYTES:
            raise InvalidInput(
                "policy", f"{length} bytes are too many", f"the most is {MOST_BYTES}"
            )
        if request.judging not in _WAYS:
            raise InvalidInput("judging", f"{request.judging} is unknown", "send SOUND or UPSTREAM")
        if self._is_busy:
            message = "another plan is being made; try again once it is done"
            raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY", message)
        self._is_busy = True
        try:
            plan = self._planning.plan(request.policy, _WAYS[request.judging])
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


def _refuse(part: Planned) -> None:
    """Refuse the call if there is to be no plan."""
    if part.problems:
        fields = [("policy", problem) for problem in part.problems]
        code = grpc.StatusCode.INVALID_ARGUMENT
        raise Refusal(code, "INVALID_FIELD", f"policy: {part.problems[0]}", fields)
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


def _kept(kept: Kept) -> pb.KeptPod:
    return pb.KeptPod(
        namespace=kept.pod.namespace,
        pod=kept.pod.name,
        node=kept.node,
        strategy=kept.strategy,
        profile=kept.profile,
        why=kept.why,
    )
