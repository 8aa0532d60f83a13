"""How many slots a reservation has."""

from __future__ import annotations

from reserver.client.values import ReservationInfo
from reserver.reservations.claimed_slots import slots_in_all
from reserver.stores.codec.slot_rules import refilled_by_default


def all_slots(reservation: ReservationInfo) -> int:
    """Return how many slots there are, claimed ones included: more than `slots` with a refill."""
    spec, limit = reservation.spec, 0
    if spec.refill:
        limit = spec.refill_up_to or refilled_by_default(spec.slots)
    return slots_in_all(spec.slots, limit, len(reservation.claims))
