"""Converts the contract's messages to and from the client's values."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC

import grpc
from google.rpc import error_details_pb2, status_pb2

from reserver.client.spec_message import read_spec
from reserver.client.values import (
    CallFailed,
    Claim,
    PastClaim,
    PastReservation,
    PlacedSlots,
    Reservation,
    Selection,
)
from reserver.reservations.enums import Outcome, Phase
from reserver.v1 import reservation_pb2 as pb

_DETAILS_KEY = "grpc-status-details-bin"


def failure(error: grpc.aio.AioRpcError) -> CallFailed:
    """Return why a call failed."""
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata.get(_DETAILS_KEY, b""))
    info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(request)
    fields = {each.field: each.description for each in request.field_violations}
    return CallFailed(error.code().name, error.details() or "", info.reason, fields)


def read(found: pb.Reservation) -> Reservation:
    """Return a reservation that was received."""
    return Reservation(
        name=found.name,
        id=found.id,
        spec=read_spec(found.spec, found.id.partition("/")[0]),
        etag=found.etag,
        phase=_phase(found.status.phase),
        is_backed=found.status.backed,
        message=found.status.message,
        reason=found.status.reason,
        placements=tuple(PlacedSlots(p.node, p.slots) for p in found.status.placements),
        claims=tuple(Claim(claim.pod, claim.uid) for claim in found.status.claims),
        author=found.author,
        since=found.since.ToDatetime(UTC) if found.HasField("since") else None,
        labels=dict(found.labels),
        assumes_namespace=found.status.assumes_namespace,
    )


def read_past(found: pb.PastReservation) -> PastReservation:
    """Return a reservation that is over, as it was received."""
    outcome = None
    with suppress(ValueError, KeyError):
        outcome = Outcome[pb.PastReservation.Outcome.Name(found.outcome).removeprefix("OUTCOME_")]
    return PastReservation(
        name=found.name,
        id=found.id,
        owner_namespace=found.owner_namespace,
        owners=found.owners,
        outcome=outcome,
        since=found.since.ToDatetime(UTC),
        ended=found.ended.ToDatetime(UTC),
        expires_at=found.expires_at.ToDatetime(UTC) if found.HasField("expires_at") else None,
        nodes=tuple(found.nodes),
        resources=dict(found.resources),
        slots=found.slots,
        claimed=found.claimed,
        claims=tuple(
            PastClaim(c.pod, c.uid, c.node, c.at.ToDatetime(UTC) if c.HasField("at") else None)
            for c in found.claims
        ),
        description=found.description,
        author=found.author,
    )


def _phase(number: int) -> Phase | None:
    """Return a phase, None for one that this client does not know yet."""
    with suppress(ValueError, KeyError):
        return Phase[pb.Phase.Name(number).removeprefix("PHASE_")]
    return None


def select(selection: Selection) -> pb.ReservationFilter:
    """Return which reservations are meant, as it is sent."""
    made_by = selection.owner_controller
    return pb.ReservationFilter(
        node=selection.node,
        owner="/".join(selection.owner) if selection.owner else "",
        owner_namespace=selection.owner_namespace,
        owner_controller=pb.ControllerOwner(**made_by._asdict()) if made_by else None,
        owner_labels=selection.owner_labels,
        phases=[f"PHASE_{phase.name}" for phase in selection.phases],
        label_selector=selection.label_selector,
    )
