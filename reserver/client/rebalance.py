"""The call about rebalancing: which pods would move where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from reserver.client import messages
from reserver.client.connection import Connection
from reserver.client.spec_message import write_spec
from reserver.client.values import Spec
from reserver.cluster.pod import PodName
from reserver.rebalance.modes import Compat
from reserver.rebalance.plan import Kept, Landing, Move
from reserver.v1 import rebalance_pb2 as pb
from reserver.v1.rebalance_pb2_grpc import RebalanceServiceStub

_JUDGINGS = {Compat.PLAN: pb.JUDGING_SOUND, Compat.UPSTREAM: pb.JUDGING_UPSTREAM}


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRoom:
    """For whom room is to be made: 500 pods and slots at most, all pods that wait if it is empty.

    Attributes:
        pods: namespaces and names of pods that wait for a node.
        reservations: what nobody has created yet, by the name that the plan is to call it.
        together: for all of them, or for none.
    """

    pods: Iterable[tuple[str, str]] = ()
    reservations: Mapping[str, Spec] = field(default_factory=dict)
    together: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancePlan:
    """A plan: which pods would move where.

    Attributes:
        moves: in the order in which they are made.
        kept: what stays that the policy would move, and pods that get no room.
        more_kept: how many more stay.
        landings: where pods go after the moves that room is made for.
        fewest_moves: no plan that makes room for them has fewer.
        notes: what else people have to know.
        warnings: what of the policy has no effect.
    """

    moves: tuple[Move, ...]
    kept: tuple[Kept, ...]
    more_kept: int
    landings: tuple[Landing, ...]
    fewest_moves: int
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
        policy: str = "",
        compat: Compat = Compat.PLAN,
        *,
        make_room: MakeRoom | None = None,
        deadline_s: float = 120.0,
        progress: Callable[[str], None] | None = None,
    ) -> RebalancePlan:
        """Return what a policy of the descheduler would move, or what makes room for pods.

        It is not repeated if it fails.

        Args:
            policy: its text.
            compat: how it is judged.
            make_room: instead of what the policy moves, which may be empty then: the evictor of its
                first profile says which pods may make way.
            deadline_s: how long it may take, in seconds.
            progress: told what is being done.

        Raises:
            CallFailed: there is no plan; ``INVALID_ARGUMENT`` for a policy that is none,
                or a pod that does not wait, ``RESOURCE_EXHAUSTED`` while another plan is being
                made.
        """
        moves: list[Move] = []
        kept: list[Kept] = []
        landings: list[Landing] = []
        room = None if make_room is None else _room(make_room)
        request = pb.PlanRequest(policy=policy, judging=_JUDGINGS[compat], make_room=room)
        metadata = self._connection.metadata()
        last = pb.PlanResponse()
        try:
            async for part in self._stub.Plan(request, timeout=deadline_s, metadata=metadata):
                if part.progress and progress is not None:
                    progress(part.progress)
                moves += map(_move, part.moves)
                kept += map(_kept, part.kept)
                landings += map(_landing, part.landings)
                last = part
        except grpc.aio.AioRpcError as exc:
            raise messages.failure(exc) from exc
        return RebalancePlan(
            moves=tuple(moves),
            kept=tuple(kept),
            more_kept=last.more_kept,
            landings=tuple(landings),
            fewest_moves=last.fewest_moves,
            notes=tuple(last.notes),
            warnings=tuple(last.warnings),
        )


def _room(asked: MakeRoom) -> pb.MakeRoom:
    return pb.MakeRoom(
        pods=(pb.PendingPod(namespace=home, name=name) for home, name in asked.pods),
        reservations=(
            pb.WantedReservation(name=name, spec=write_spec(spec))
            for name, spec in asked.reservations.items()
        ),
        together=asked.together,
    )


def _landing(each: pb.Landing) -> Landing:
    return Landing(PodName(each.namespace, each.pod), each.node)


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
