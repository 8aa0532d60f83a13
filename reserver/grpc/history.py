"""The History method: reservations that are over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.pacer import Pacer
from reserver.grpc import documents
from reserver.grpc.paging import PageToken
from reserver.k8s.objects.times import parse_moment
from reserver.stores.archive_writer import ArchiveWriter
from reserver.stores.codec.archive import ArchivedReservation
from reserver.v1 import reservation_pb2 as pb


@dataclass(eq=False, repr=False)
class History:
    """Answers what became of reservations."""

    writer: ArchiveWriter
    clock: Callable[[], float]

    async def page(self, request: pb.HistoryRequest) -> pb.HistoryResponse:
        """Return what ended, the oldest first.

        Raises:
            InvalidInput: a field is out of range.
        """
        pages = PageToken.of(request)
        since = parse_moment(documents.moment(request.since, "since"))
        await self.writer.refresh()
        found: list[tuple[str, ArchivedReservation]] = []
        pacer = Pacer()
        for key, one in self.writer.archive.all(self.clock()):
            is_named = request.name in {"", one.name, one.id}
            if (
                is_named
                and request.owner_namespace in {"", one.owner_namespace}
                and parse_moment(one.ended) >= since
            ):
                found.append((f"{one.ended}/{key}", one))
            await pacer.give_way()
        page, token = pages.cut(found, lambda each: each[0])
        shown = [_show(one) for _, one in page]
        return pb.HistoryResponse(reservations=shown, next_page_token=token)


def _show(one: ArchivedReservation) -> pb.PastReservation:
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
