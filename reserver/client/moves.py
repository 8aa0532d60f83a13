"""The calls about moves of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from reserver.client.connection import Connection
from reserver.client.following import follow
from reserver.client.values import CallFailed, ChangeKind
from reserver.migration.move import ENDED, Group, Mode, Phase, Replacement
from reserver.v1 import move_pb2 as pb
from reserver.v1.move_pb2_grpc import MoveServiceStub


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """What a move asks for.

    Attributes:
        pod: the name of the pod that is to leave its node.
        pod_uid: its UID; empty for the pod that has the name when the move begins.
        after: the PodMove that moves the pod first: what comes in its place is to leave; empty if
            it follows none.
        node: where to; empty for any node that fits.
        node_selector: labels that the node must have, instead of `node`.
        mode: what has to be there before the eviction.
        timeout: from its creation, or, if it follows another one, from when its pod has come; None
            for ten minutes.
        grace_period_s: what the pod gets to end, in seconds; None for its own period.
        group: the moves that it evicts together with; None if it is alone. `Moves.create` takes it
            beside the moves.
        paused: it does not go on.
        keep_s: it is deleted so long after its end, in seconds; None for never.
    """

    pod: str
    pod_uid: str = ""
    after: str = ""
    node: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.RESERVE_FIRST
    timeout: timedelta | None = None
    grace_period_s: int | None = None
    group: Group | None = None
    paused: bool = False
    keep_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMove:
    """A move as it was when the server answered.

    Attributes:
        namespace: of the PodMove and of its pod.
        name: its name.
        uid: tells it from another one of that name.
        spec: what it asks for; None if that cannot be read.
        phase: how far it is; None if this client does not know that phase.
        reason: why it is there, in one word; empty before anybody has looked.
        message: the same in a sentence.
        pod: the pod that leaves, if it has come with the PodMove that this one follows; else empty.
        source: the node that the pod leaves; empty before it is known.
        target: the node of the seat, or where the replacement has landed; empty before.
        reservation: the name of the Reservation that is the seat; empty if it has none.
        replacement: the pod that has come in its place; None as long as there is none.
        created: when it was created.
        started: when it had its turn; None before.
        evicted: when the pod was seen to leave; None before.
        finished: when it ended; None before.
    """

    namespace: str
    name: str
    uid: str
    spec: MoveSpec | None
    phase: Phase | None
    reason: str
    message: str
    pod: str
    source: str
    target: str
    reservation: str
    replacement: Replacement | None
    created: datetime | None
    started: datetime | None
    evicted: datetime | None
    finished: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.phase in ENDED


class MoveChange(NamedTuple):
    """One change of a move."""

    kind: ChangeKind
    move: PodMove


class Moves:
    """The calls about moves.

    Each needs the right on ``podmoves.reserver.io`` that kubectl would need. It fails with
    ``FAILED_PRECONDITION``, ``NO_MOVES_HERE``, where the server carries no moves out.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._call = connection.call
        self._stub: Any = MoveServiceStub(connection.channel)

    async def create(
        self,
        namespace: str,
        moves: Mapping[str, MoveSpec],
        *,
        group: str = "",
        group_size: int = 0,
        request_id: str = "",
    ) -> tuple[PodMove, ...]:
        """Write moves, by name: all of them or none.

        Args:
            namespace: of the moves and of their pods.
            moves: what they ask for.
            group: none of its moves evicts before all hold a seat. Required for more than one.
            group_size: how many they are with those that other calls write; 0 for these only.
            request_id: give one to be able to repeat the call after a restart of this process.

        Raises:
            CallFailed: they were not written, or that is unknown; it is safe to call again with the
                same `request_id`.
        """
        request = pb.CreateMovesRequest(
            namespace=namespace,
            moves=[
                pb.CreateMovesRequest.Entry(name=name, spec=_write(spec))
                for name, spec in moves.items()
            ],
            group=pb.MoveGroup(name=group, size=group_size) if group else None,
            request_id=request_id or uuid4().hex,
        )
        return tuple(map(_read, (await self._call(self._stub.CreateMoves, request)).moves))

    async def get(self, namespace: str, name: str) -> PodMove:
        """Return a move.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is none.
        """
        request = pb.GetMoveRequest(namespace=namespace, name=name)
        return _read((await self._call(self._stub.GetMove, request)).move)

    async def list(
        self, namespace: str = "", *, phases: Sequence[Phase] = (), group: str = ""
    ) -> AsyncIterator[PodMove]:
        """Yield moves, ordered by namespace and name.

        Args:
            namespace: of these; empty for those of all namespaces.
            phases: of one of these phases; empty for any.
            group: of the group of this name; empty for any.

        Raises:
            CallFailed: they cannot be read.
        """
        request = pb.ListMovesRequest(namespace=namespace, filter=_filter(phases, group))
        while True:
            answer = await self._call(self._stub.ListMoves, request)
            for each in answer.moves:
                yield _read(each)
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    async def watch(
        self, namespace: str = "", *, phases: Sequence[Phase] = (), group: str = ""
    ) -> AsyncIterator[MoveChange]:
        """Yield every move as ADDED, and then each change, for ever; resumed as `Client.watch` is.

        Args:
            namespace: of these; empty for those of all namespaces.
            phases: of one of these phases; empty for any.
            group: of the group of this name; empty for any.

        Raises:
            CallFailed: they may not be watched.
        """
        request = pb.WatchMovesRequest(namespace=namespace, filter=_filter(phases, group))
        async for kind, move in follow(
            self._connection,
            self._stub.WatchMoves,
            request,
            lambda message: (message.move.uid, _read(message.move)),
        ):
            yield MoveChange(kind, move)

    async def pause(self, namespace: str, name: str, *, uid: str = "") -> PodMove:
        """Have a move begin nothing new, and evict nothing. Its deadline stays.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is none; ``ABORTED`` if `uid` is not its UID.
        """
        return await self._set_paused(namespace, name, uid, paused=True)

    async def resume(self, namespace: str, name: str, *, uid: str = "") -> PodMove:
        """Have a move go on.

        Raises:
            CallFailed: as `pause`.
        """
        return await self._set_paused(namespace, name, uid, paused=False)

    async def _set_paused(self, namespace: str, name: str, uid: str, *, paused: bool) -> PodMove:
        request = pb.UpdateMoveRequest(namespace=namespace, name=name, paused=paused, uid=uid)
        return _read((await self._call(self._stub.UpdateMove, request)).move)

    async def delete(
        self, namespace: str, name: str, *, uid: str = "", missing_ok: bool = True
    ) -> None:
        """Call a move off: its seat goes with it. A pod that was evicted stays so.

        Args:
            namespace: of the move.
            name: of the move.
            uid: only if this is its UID, if it is not empty.
            missing_ok: ignore it if it is gone.

        Raises:
            CallFailed: it may still go on; ``ABORTED`` if `uid` is not its UID.
        """
        request = pb.DeleteMoveRequest(namespace=namespace, name=name, uid=uid)
        try:
            await self._call(self._stub.DeleteMove, request)
        except CallFailed as exc:
            if not missing_ok or exc.code != grpc.StatusCode.NOT_FOUND.name:
                raise


def _filter(phases: Sequence[Phase], group: str) -> pb.MoveFilter:
    return pb.MoveFilter(phases=[f"MOVE_PHASE_{each.name}" for each in phases], group=group)


def _write(spec: MoveSpec) -> pb.MoveSpec:
    to, options = None, None
    if spec.node or spec.node_selector:
        to = pb.MoveTarget(node=spec.node, node_selector=dict(spec.node_selector))
    if spec.grace_period_s is not None:
        options = pb.MoveDeleteOptions(grace_period_seconds=spec.grace_period_s)
    return pb.MoveSpec(
        pod=pb.MovedPod(name=spec.pod, uid=spec.pod_uid, after=spec.after),
        to=to,
        mode=f"MOVE_MODE_{spec.mode.name}",
        timeout=spec.timeout,
        delete_options=options,
        group=pb.MoveGroup(name=spec.group.name, size=spec.group.size) if spec.group else None,
        paused=spec.paused,
        ttl_seconds_after_finished=spec.keep_s,
    )


def _read_spec(found: pb.MoveSpec) -> MoveSpec:
    options = found.delete_options
    has_grace = options.HasField("grace_period_seconds")
    has_ttl = found.HasField("ttl_seconds_after_finished")
    only = found.mode == pb.MOVE_MODE_EVICT_ONLY
    return MoveSpec(
        pod=found.pod.name,
        pod_uid=found.pod.uid,
        after=found.pod.after,
        node=found.to.node,
        node_selector=dict(found.to.node_selector),
        mode=Mode.EVICT_ONLY if only else Mode.RESERVE_FIRST,
        timeout=found.timeout.ToTimedelta() if found.HasField("timeout") else None,
        grace_period_s=options.grace_period_seconds if has_grace else None,
        group=Group(found.group.name, found.group.size) if found.HasField("group") else None,
        paused=found.paused,
        keep_s=found.ttl_seconds_after_finished if has_ttl else None,
    )


def _read(found: pb.PodMove) -> PodMove:
    status, came = found.status, found.status.replacement
    return PodMove(
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        spec=_read_spec(found.spec) if found.HasField("spec") else None,
        phase=_phase(status.phase),
        reason=status.reason,
        message=status.message,
        pod=status.pod,
        source=status.from_node,
        target=status.to_node,
        reservation=status.reservation,
        replacement=Replacement(came.name, came.uid, came.node) if came.uid else None,
        created=_moment(found, "created", found.created),
        started=_moment(status, "started", status.started),
        evicted=_moment(status, "evicted", status.evicted),
        finished=_moment(status, "finished", status.finished),
    )


def _moment(found: pb.PodMove | pb.MoveStatus, name: str, moment: Timestamp) -> datetime | None:
    return moment.ToDatetime(UTC) if found.HasField(name) else None


def _phase(number: int) -> Phase | None:
    with suppress(ValueError, KeyError):
        return Phase[pb.MovePhase.Name(number).removeprefix("MOVE_PHASE_")]
    return None
