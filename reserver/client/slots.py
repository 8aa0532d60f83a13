"""The number of slots of a reservation, and the resources of a slot."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.client.values import ReservationInfo, Spec
from reserver.cluster.node import NODES
from reserver.reservations.placement import slots_in_all
from reserver.stores.codec.slot_rules import refilled_by_default


def all_slots(reservation: ReservationInfo) -> int:
    """Return the number of slots, including claimed ones: more than `slots` with refill."""
    spec, limit = reservation.spec, 0
    if spec.nodes is not None:
        return spec.nodes.count
    if spec.refill:
        limit = spec.refill_up_to or refilled_by_default(spec.slots)
    return slots_in_all(spec.slots, limit, len(reservation.claims))


def of_slot(spec: Spec) -> Mapping[str, str]:
    """Return the resources of one slot, as quantities; a whole node is one `NODES`."""
    return spec.resources if spec.nodes is None else {NODES: "1"}
