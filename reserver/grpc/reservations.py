"""ReservationService: creates, shows, follows, changes and ends reservations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import grpc

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod, PodName
from reserver.grpc.changes import Changes
from reserver.grpc.creation import Creation
from reserver.grpc.following import follow
from reserver.grpc.history import History
from reserver.grpc.paging import PageToken
from reserver.grpc.reservation_list import Catalogue, ReservationFeed
from reserver.grpc.selection import ReservationSelector
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceServicer

Aio = grpc.aio.ServicerContext[Any, Any]


class Reservations(ReservationServiceServicer):
    """ReservationService on a catalogue, a feed, and what creates and changes."""

    def __init__(
        self,
        catalogue: Catalogue,
        feed: ReservationFeed,
        creation: Creation,
        changes: Changes,
        history: History,
        pods: Mapping[PodName, Pod],
    ) -> None:
        self._pods = pods
        self._catalogue = catalogue
        self._feed = feed
        self._creation = creation
        self._changes = changes
        self._history = history

    async def Create(self, request: pb.CreateRequest, context: Aio) -> pb.CreateResponse:  # noqa: ARG002, N802
        """Write a reservation; its hold is in force when this returns."""
        return pb.CreateResponse(reservation=await self._creation.one(request))

    async def CreateSet(self, request: pb.CreateSetRequest, context: Aio) -> pb.CreateSetResponse:  # noqa: ARG002, N802
        """Write several reservations that are all backed at this instant, or none."""
        return pb.CreateSetResponse(reservations=await self._creation.all(request))

    async def Get(self, request: pb.GetRequest, context: Aio) -> pb.GetResponse:  # noqa: ARG002, N802
        """Return one reservation."""
        ref = self._catalogue.find(request.name)
        return pb.GetResponse(reservation=self._catalogue.show_one(ref))

    async def List(self, request: pb.ListRequest, context: Aio) -> pb.ListResponse:  # noqa: ARG002, N802
        """Return reservations, ordered by id, page by page."""
        selection = ReservationSelector.of(request.filter, self._pods)
        pages = PageToken.of(request)
        await self._feed.catch_up()
        found, pacer = [], Pacer()
        for packed in self._feed.all():
            each = pb.Reservation.FromString(packed)
            if selection.covers(each):
                found.append(each)
            await pacer.give_way()
        page, token = pages.cut(found, lambda each: each.id)
        return pb.ListResponse(reservations=page, next_page_token=token)

    async def Watch(  # noqa: N802
        self,
        request: pb.WatchRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.WatchResponse]:
        """Follow changes."""
        selection = ReservationSelector.of(request.filter, self._pods)
        unpack = pb.Reservation.FromString
        changes = follow(self._feed, request.resume_token, unpack, selection.covers)
        async with aclosing(changes):
            async for kind, each, token in changes:
                yield pb.WatchResponse(kind=kind, reservation=each, resume_token=token)

    async def Update(self, request: pb.UpdateRequest, context: Aio) -> pb.UpdateResponse:  # noqa: ARG002, N802
        """Replace a spec; more is held only if it fits."""
        return pb.UpdateResponse(reservation=await self._changes.update(request))

    async def Extend(self, request: pb.ExtendRequest, context: Aio) -> pb.ExtendResponse:  # noqa: ARG002, N802
        """Let a reservation expire at another moment."""
        return pb.ExtendResponse(reservation=await self._changes.extend(request))

    async def Release(self, request: pb.ReleaseRequest, context: Aio) -> pb.ReleaseResponse:  # noqa: ARG002, N802
        """Remove a reservation; it holds nothing when this returns."""
        await self._changes.release(request)
        return pb.ReleaseResponse()

    async def History(self, request: pb.HistoryRequest, context: Aio) -> pb.HistoryResponse:  # noqa: ARG002, N802
        """Return what became of reservations that are over, page by page."""
        return await self._history.page(request)
