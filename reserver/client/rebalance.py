"""The call about rebalancing: which pods would move where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc

from reserver.client import messages
from reserver.client.connection import Connection
from reserver.cluster.pod import PodName
from reserver.rebalance.plan import Kept, Move
from reserver.rebalance.ways import Compat
from reserver.v1 import rebalance_pb2 as pb
from reserver.v1.rebalance_pb2_grpc import RebalanceServiceStub

_JUDGINGS = {Compat.SOUND: pb.JUDGING_SOUND, Compat.UPSTREAM: pb.JUDGING_UPSTREAM}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancePlan:
    """Which pods would move where.

    Attributes:
        moves: in the order in which they are made.
        kept: what stays that the policy would move.
        more_kept: how many more stay.
        notes: what else people have to know.
        warnings: what of the policy has no effect.
    """

    moves: tuple[Move, ...]
    kept: tuple[Kept, ...]
    more_kept: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


class Rebalance:
    """Calls of RebalanceService."""

    def __init__(self, connection: Connection) -> None:
        """Call over a connection."""
        self._connection = connection
        self._stub: Any = RebalanceServiceStub(connection.channel)

    async def plan(
        self,
        policy: str,
        compat: Compat = Compat.SOUND,
        *,
        deadline_s: float = 120.0,
        progress: Callable[[str], None] | None = None,
    ) -> RebalancePlan:
        """Return what a policy of the descheduler would move. It is not repeated if it fails.

        Args:
            policy: its text.
            compat: how it is judged.
            deadline_s: how long it may take, in seconds.
            progress: told what is being done.

        Raises:
            CallFailed: there is no plan; ``INVALID_ARGUMENT`` for a policy that is none,
                ``RESOURCE_EXHAUSTED`` while another plan is being made.
        """
        moves: list[Move] = []
        kept: list[Kept] = []
        request = pb.PlanRequest(policy=policy, judging=_JUDGINGS[compat])
        metadata = self._connection.metadata()
        last = pb.PlanResponse()
        try:
            async for part in self._stub.Plan(request, timeout=deadline_s, metadata=metadata):
                if part.progress and progress is not None:
                    progress(part.progress)
                moves += map(_move, part.moves)
                kept += map(_kept, part.kept)
                last = part
        except grpc.aio.AioRpcError as exc:
            raise messages.failure(exc) from exc
        return RebalancePlan(
            moves=tuple(moves),
            kept=tuple(kept),
            more_kept=last.more_kept,
            notes=tuple(last.notes),
            warnings=tuple(last.warnings),
        )


def _move(each: pb.PlannedMove) -> Move:
    return Move(
        pod=PodName(each.namespace, each.pod),
        uid=each.uid,
        source=each.from_node,
        target=each.to_node or None,
        strategy=each.strategy,
        profile=each.profile,
        reason=each.reason,
        improves=each.improves,
    )


def _kept(each: pb.KeptPod) -> Kept:
    return Kept(
        pod=PodName(each.namespace, each.pod),
        node=each.node,
        strategy=each.strategy,
        profile=each.profile,
        why=each.why,
    )
