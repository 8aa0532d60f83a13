"""The calls about moves of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from reserver.client import move_message
from reserver.client.connection import Connection
from reserver.client.following import follow
from reserver.client.move_values import MoveChange, MoveSpec, PodMove
from reserver.migration.move import Group, Phase
from reserver.v1 import move_pb2 as pb
from reserver.v1.move_pb2_grpc import MoveServiceStub


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
        across: bool = False,
        request_id: str = "",
    ) -> tuple[PodMove, ...]:
        """Write moves, by name: all of them or none.

        Args:
            namespace: of the moves and of their pods.
            moves: what they ask for.
            group: none of its moves evicts before all hold a seat. Required for more than one.
            group_size: how many they are with those that other calls write; 0 for these only.
            across: the PodMoveGroup of that name lists its members, in several namespaces.
            request_id: give one to be able to repeat the call after a restart of this process.

        Raises:
            CallFailed: they were not written, or that is unknown; it is safe to call again with the
                same `request_id`.
        """
        request = pb.CreateMovesRequest(
            namespace=namespace,
            moves=[
                pb.CreateMovesRequest.Entry(name=name, spec=move_message.write(spec))
                for name, spec in moves.items()
            ],
            group=move_message.write_group(Group(group, group_size, across)) if group else None,
            request_id=request_id or uuid4().hex,
        )
        return tuple(
            map(move_message.read, (await self._call(self._stub.CreateMoves, request)).moves)
        )

    async def get(self, namespace: str, name: str) -> PodMove:
        """Return a move.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is none.
        """
        request = pb.GetMoveRequest(namespace=namespace, name=name)
        return move_message.read((await self._call(self._stub.GetMove, request)).move)

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
        async for page in self._connection.pages(self._stub.ListMoves, request):
            for each in page.moves:
                yield move_message.read(each)

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
            lambda message: (message.move.uid, move_message.read(message.move)),
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
        return move_message.read((await self._call(self._stub.UpdateMove, request)).move)

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
        await self._connection.remove(self._stub.DeleteMove, request, missing_ok=missing_ok)


def _filter(phases: Sequence[Phase], group: str) -> pb.MoveFilter:
    return pb.MoveFilter(phases=[f"MOVE_PHASE_{each.name}" for each in phases], group=group)
