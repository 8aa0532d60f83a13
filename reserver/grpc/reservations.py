"""ReservationService: creates, shows, watches, changes and releases reservations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod, PodName
from reserver.grpc import documents
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.changes import Changes
from reserver.grpc.creation import Creation
from reserver.grpc.feed import ReservationFeed, follow
from reserver.grpc.selection import PageToken, ReservationSelector
from reserver.k8s.objects.times import parse_moment
from reserver.stores.archive import ArchivedReservation
from reserver.stores.archive_writer import ArchiveWriter
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceServicer

Aio = grpc.aio.ServicerContext[Any, Any]


@dataclass(eq=False, repr=False)
class Reservations(ReservationServiceServicer):
    """ReservationService on the catalogue, the feed, the history, and creation and changes."""

    catalogue: Catalogue
    feed: ReservationFeed
    creation: Creation
    changes: Changes
    past: ArchiveWriter
    clock: Callable[[], float]
    pods: Mapping[PodName, Pod]

    async def Create(self, request: pb.CreateRequest, context: Aio) -> pb.CreateResponse:  # noqa: ARG002, N802
        """Create a reservation, whose hold is in force when this returns."""
        return pb.CreateResponse(reservation=await self.creation.one(request))

    async def CreateSet(self, request: pb.CreateSetRequest, context: Aio) -> pb.CreateSetResponse:  # noqa: ARG002, N802
        """Create several reservations, all of them backed at this instant, or none."""
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

        def show(packed: bytes) -> pb.Reservation | None:
            shown = pb.Reservation.FromString(packed)
            return shown if selection.covers(shown) else None

        page, token = await pages.read(self.feed.named(), show, Pacer())
        return pb.ListResponse(reservations=page, next_page_token=token)

    async def Watch(  # noqa: N802
        self,
        request: pb.WatchRequest,
        context: Aio,  # noqa: ARG002
    ) -> AsyncIterator[pb.WatchResponse]:
        """Send all reservations, and then each change."""
        selection = ReservationSelector.of(request.filter, self.pods)
        async with aclosing(follow(self.feed, request.resume_token, selection)) as messages:
            async for message in messages:
                yield message

    async def Update(self, request: pb.UpdateRequest, context: Aio) -> pb.UpdateResponse:  # noqa: ARG002, N802
        """Replace a spec; a larger hold must fit."""
        return pb.UpdateResponse(reservation=await self.changes.update(request))

    async def Extend(self, request: pb.ExtendRequest, context: Aio) -> pb.ExtendResponse:  # noqa: ARG002, N802
        """Change the expiry of a reservation."""
        return pb.ExtendResponse(reservation=await self.changes.extend(request))

    async def Release(self, request: pb.ReleaseRequest, context: Aio) -> pb.ReleaseResponse:  # noqa: ARG002, N802
        """Remove a reservation, whose hold has ended when this returns."""
        await self.changes.release(request)
        return pb.ReleaseResponse()

    async def History(self, request: pb.HistoryRequest, context: Aio) -> pb.HistoryResponse:  # noqa: ARG002, N802
        """Return ended reservations, oldest first, page by page."""
        pages = PageToken.of(request)
        since = parse_moment(documents.moment(request.since, "since"))
        await self.past.refresh()
        found: list[tuple[str, ArchivedReservation]] = []
        pacer = Pacer()
        for key, one in self.past.archive.all(self.clock()):
            is_named = request.name in {"", one.name, one.id}
            is_owned = request.owner_namespace in {"", one.owner_namespace}
            if is_named and is_owned and parse_moment(one.ended) >= since:
                found.append((f"{one.ended}/{key}", one))
            await pacer.give_way()
        page, token = await pages.read(found, _past, pacer)
        return pb.HistoryResponse(reservations=page, next_page_token=token)


def _past(one: ArchivedReservation) -> pb.PastReservation:
    return pb.PastReservation(
        name=one.name,
        id=one.id,
        owner_namespace=one.owner_namespace,
        owners=one.owners,
        outcome=f"OUTCOME_{one.outcome.name}",
        since=_moment(one.since),
        ended=_moment(one.ended),
        expires_at=_moment(one.expires_at),
        nodes=one.nodes,
        resources=one.resources,
        slots=one.slots,
        claimed=one.claimed,
        claims=[
            pb.PastClaim(pod=c.pod, uid=c.uid, node=c.node, at=_moment(c.at)) for c in one.claims
        ],
        description=one.description,
        author=one.author,
        spec=one.spec,
    )


def _moment(text: str) -> Timestamp | None:
    if not text:
        return None
    moment = Timestamp()
    moment.FromJsonString(text)
    return moment
