"""ReservationService: creates, shows, follows, changes and ends reservations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod, PodName
from reserver.grpc.changes import Changes
from reserver.grpc.creation import Creation
from reserver.grpc.feed import ReservationFeed
from reserver.grpc.following import follow
from reserver.grpc.history import History
from reserver.grpc.paging import PageToken
from reserver.grpc.reservation_list import Catalogue
from reserver.grpc.selection import ReservationSelector
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceServicer

Aio = grpc.aio.ServicerContext[Any, Any]


@dataclass(eq=False, repr=False)
class Reservations(ReservationServiceServicer):
    """ReservationService on a catalogue, a feed, and what creates and changes."""

    catalogue: Catalogue
    feed: ReservationFeed
    creation: Creation
    changes: Changes
    history: History
    pods: Mapping[PodName, Pod]

    async def Create(self, request: pb.CreateRequest, context: Aio) -> pb.CreateResponse:  # noqa: ARG002, N802
        """Write a reservation; its hold is in force when this returns."""
        return pb.CreateResponse(reservation=await self.creation.one(request))

    async def CreateSet(self, request: pb.CreateSetRequest, context: Aio) -> pb.CreateSetResponse:  # noqa: ARG002, N802
        """Write several reservations that are all backed at this instant, or none."""
        return pb.CreateSetResponse(reservations=await self.creation.all(request))

    async def Get(self, request: pb.GetRequest, context: Aio) -> pb.GetResponse:  # noqa: ARG002, N802
        """Return one reservation."""
        ref = self.catalogue.find(request.name)
        return pb.GetResponse(reservation=self.catalogue.show_one(ref))

    async def List(self, request: pb.ListRequest, context: Aio) -> pb.ListResponse:  # noqa: ARG002, N802
        """Return reservations, ordered by id, page by page."""
        selection = ReservationSelector.of(request.filter, self.pods)
        pages = PageToken.of(request)
        await self.feed.catch_up()
        found, pacer = [], Pacer()
        for packed in self.feed.all():
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
        selection = ReservationSelector.of(request.filter, self.pods)
        async with aclosing(follow(self.feed, request.resume_token, selection)) as messages:
            async for message in messages:
                yield message

    async def Update(self, request: pb.UpdateRequest, context: Aio) -> pb.UpdateResponse:  # noqa: ARG002, N802
        """Replace a spec; more is held only if it fits."""
        return pb.UpdateResponse(reservation=await self.changes.update(request))

    async def Extend(self, request: pb.ExtendRequest, context: Aio) -> pb.ExtendResponse:  # noqa: ARG002, N802
        """Let a reservation expire at another moment."""
        return pb.ExtendResponse(reservation=await self.changes.extend(request))

    async def Release(self, request: pb.ReleaseRequest, context: Aio) -> pb.ReleaseResponse:  # noqa: ARG002, N802
        """Remove a reservation; it holds nothing when this returns."""
        await self.changes.release(request)
        return pb.ReleaseResponse()

    async def History(self, request: pb.HistoryRequest, context: Aio) -> pb.HistoryResponse:  # noqa: ARG002, N802
        """Return what became of reservations that are over, page by page."""
        return await self.history.page(request)
