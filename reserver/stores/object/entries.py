"""Reads a Reservation object as an entry of the store."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import KEPT, SpecLimits, check_bytes, limits_at
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Placement, clipped
from reserver.reservations.reservation import Reservation
from reserver.stores.codec import document, newer_fields, placement_codec
from reserver.stores.codec.placement_codec import read_parts
from reserver.stores.configmap.entries import Entries, EntryProblem
from reserver.stores.object.codec import PLACEMENT_ANNOTATION, ReservationObject, ReservationStatus


def read_object(item: ReservationObject, seen_at: float, home: str) -> Entries:
    """Return what a Reservation says.

    Unlike a data key it knows when it was created: a ``ttl`` counts from there, and nothing has to
    be written down.

    Args:
        item: the object.
        seen_at: unix seconds; from when a ``ttl`` counts if it does not say when it was created.
        home: Reserver's own namespace (`limits_at`).
    """
    ref, said, beyond = item.ref, item.said(), ""
    try:
        reservation, ignored = _read(item, seen_at, limits_at(ref, home))
    except InvalidInput as exc:
        problems = (EntryProblem(ref, exc.under("spec")),)
        if said is None or not _was_in_force(item, said):
            return Entries(problems=problems)
        try:
            (reservation, ignored), beyond = _read(item, seen_at, KEPT), str(exc.under("spec"))
        except InvalidInput:
            return Entries(problems=problems)
    reservation = replace(
        reservation,
        # A later object of the same name is another reservation.
        origin=reservation.origin or f"{ref}#{item.metadata.uid}",
        created_at=_created(item, 0.0),
        is_seat=item.metadata.is_seat,
        volume_claims=item.metadata.volume_claims,
        fallback=_fallback(item, limits_at(ref, home)),
    )
    return Entries((with_placements(reservation, said),), beyond=beyond, ignored=ignored)


def _read(item: ReservationObject, seen_at: float, limits: SpecLimits) -> tuple[Reservation, str]:
    """Return what it says, and what is ignored of it: no field that its CRD has is misspelt."""
    check_bytes(len(item.spec), limits.spec_bytes)
    spec = document.parse(_text(item.spec))
    return newer_fields.read(spec, item.ref, _created(item, seen_at), limits, was_in_force=True)


def _was_in_force(item: ReservationObject, said: ReservationStatus) -> bool:
    """Return whether its status, which only Reserver writes, says that this very spec was read."""
    return said.observed_generation == item.metadata.generation and said.phase != Phase.INVALID


def _fallback(item: ReservationObject, limits: SpecLimits) -> Placement | None:
    """Return where the pod of a seat may be; None for what is no seat, or does not say it."""
    written = (item.metadata.annotations or {}).get(PLACEMENT_ANNOTATION)
    if not item.metadata.is_seat or written is None or len(written) > limits.spec_bytes:
        return None
    try:
        return placement_codec.read(document.parse(written), item.metadata.namespace, limits)
    except InvalidInput:
        return None  # Not written by us.


def with_placements(reservation: Reservation, said: ReservationStatus | None) -> Reservation:
    """Return a reservation placed where its status says, if Reserver chooses its node."""
    if reservation.node:
        return reservation
    try:
        parts = read_parts(said.placements) if said else ()
    except InvalidInput:
        parts = ()  # Not written by us.
    return replace(reservation, placed=clipped(parts, reservation.most_slots))


def _text(spec: msgspec.Raw) -> str:
    try:
        text = bytes(spec).decode()
    except UnicodeDecodeError as exc:
        raise InvalidInput("", "is not UTF-8", "write it in UTF-8") from exc
    if not text:
        raise InvalidInput("", "is missing", "say what to hold, for whom")
    return text


def _created(item: ReservationObject, seen_at: float) -> float:
    try:
        return parse_moment(item.metadata.creation_timestamp)
    except InvalidInput:
        return seen_at
