"""MoveService: writes PodMoves, shows and follows them, pauses them and calls them off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.pacer import Pacer
from reserver.server.rpc.following import follow
from reserver.server.rpc.move_feed import MoveFeed
from reserver.server.rpc.move_writing import MoveWriting
from reserver.server.rpc.paging import Pages
from reserver.server.rpc.refusal import Refusal, no_such_move
from reserver.v1 import move_pb2 as pb
from reserver.v1.move_pb2_grpc import MoveServiceServicer
from reserver.wire.k8s import names

Aio = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Moving:
    """What moves pods here.

    Attributes:
        feed: the PodMoves, and their changes.
        writing: writes them.
        is_absent: whether the API server has no PodMoves.
    """

    feed: MoveFeed
    writing: MoveWriting
    is_absent: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The moves that a client selects; an empty field selects all."""

    namespace: str
    phases: frozenset[int]
    group: str

    @classmethod
    def of(cls, request: pb.ListMovesRequest | pb.WatchMovesRequest) -> Chosen:
        """Return which moves a request means.

        Raises:
            InvalidInput: the namespace cannot be one.
        """
        if request.namespace:
            names.check_label(request.namespace, "namespace", "a namespace's name")
        wanted = request.filter
        return cls(request.namespace, frozenset(wanted.phases), wanted.group)

    def covers(self, move: pb.PodMove) -> bool:
        """Return whether a move is meant."""
        return (
            self.namespace in {"", move.namespace}
            and (not self.phases or move.status.phase in self.phases)
            and self.group in {"", move.spec.group.name}
        )


class Moves(MoveServiceServicer):
    """MoveService, on what moves pods here; None where nothing does."""

    def __init__(self, moving: Moving | None) -> None:
        self._moving = moving

    async def CreateMoves(  # noqa: N802
        self,
        request: pb.CreateMovesRequest,
        context: Aio,  # noqa: ARG002
    ) -> pb.CreateMovesResponse:
        """Write a PodMove, or those of a group."""
        return pb.CreateMovesResponse(moves=await self._here().writing.create(request))

    async def GetMove(self, request: pb.GetMoveRequest, context: Aio) -> pb.GetMoveResponse:  # noqa: ARG002, N802
        """Return one move."""
        moving, name = self._here(), _name(request)
        move = moving.feed.find(name)
        if move is None:
            raise no_such_move(name)
        return pb.GetMoveResponse(move=move)

    async def ListMoves(self, request: pb.ListMovesRequest, context: Aio) -> pb.ListMovesResponse:  # noqa: ARG002, N802
        """Return moves, ordered by namespace and name, page by page."""
        feed, chosen, pages = self._here().feed, Chosen.of(request), Pages.of(request)
        await feed.catch_up()
        found, pacer = [], Pacer()
        for packed in feed.all():
            each = pb.PodMove.FromString(packed)
            if chosen.covers(each):
                found.append(each)
            await pacer.give_way()
        page, token = pages.cut(found, lambda each: f"{each.namespace}/{each.name}")
        return pb.ListMovesResponse(moves=page, next_page_token=token)

    async def WatchMoves(  # noqa: N802
        self,
        request: pb.WatchMovesRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.WatchMovesResponse]:
        """Follow changes."""
        feed, chosen = self._here().feed, Chosen.of(request)
        changes = follow(feed, request.resume_token, pb.PodMove.FromString, chosen.covers)
        async with aclosing(changes):
            async for kind, move, token in changes:
                yield pb.WatchMovesResponse(kind=kind, move=move, resume_token=token)

    async def UpdateMove(  # noqa: N802
        self,
        request: pb.UpdateMoveRequest,
        context: Aio,  # noqa: ARG002
    ) -> pb.UpdateMoveResponse:
        """Pause a move, or have it go on."""
        writing, name = self._here().writing, _name(request)
        if not request.HasField("paused"):
            raise InvalidInput("paused", "is missing", "send true or false")
        move = await writing.pause(name, request.uid, paused=request.paused)
        return pb.UpdateMoveResponse(move=move)

    async def DeleteMove(  # noqa: N802
        self,
        request: pb.DeleteMoveRequest,
        context: Aio,  # noqa: ARG002
    ) -> pb.DeleteMoveResponse:
        """Call a move off."""
        await self._here().writing.delete(_name(request), request.uid)
        return pb.DeleteMoveResponse()

    def _here(self) -> Moving:
        if self._moving is None:
            problem = "no moves are carried out here; start Reserver with --pod-moves"
        elif self._moving.is_absent():
            problem = "the API server has no PodMoves; apply scheduler-config/components/moves"
        else:
            return self._moving
        raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "NO_MOVES_HERE", problem)


def _name(request: pb.GetMoveRequest | pb.UpdateMoveRequest | pb.DeleteMoveRequest) -> PodName:
    names.check_label(request.namespace, "namespace", "a namespace's name")
    names.check_subdomain(request.name, "name", "a PodMove's name")
    return PodName(request.namespace, request.name)
