"""The outcomes of the bindings in flight, and the slots to hold for every outcome.

A binding that claims a slot may still fail. Where the slot is held again then, and no pod is
counted meanwhile, its room stays held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reserver.reservations.placement import FreeSlots
from reserver.reservations.reservation import Reservation


class BindingOutcome(NamedTuple):
    """One outcome: all bindings in flight succeed, or all fail.

    Attributes:
        claimed_on: the nodes of the claims that count then.
        counted_on: the number of pods whose claims do not count then, by the node where the pods
            are counted until then.
    """

    claimed_on: Sequence[str]
    counted_on: Counter[str]


def slots_to_hold(reservation: Reservation, outcomes: Iterable[BindingOutcome]) -> FreeSlots:
    """Return the most slots of all outcomes, by node, and without a node."""
    slots: dict[str, int] = {}
    unplaced = 0
    for claimed_on, counted_on in outcomes:
        left, without = reservation.unclaimed(claimed_on)
        for node, number in left.items():
            slots[node] = max(number - counted_on[node], slots.get(node, 0))
        unplaced = max(unplaced, without)
    return slots, unplaced
