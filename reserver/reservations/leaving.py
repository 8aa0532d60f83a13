"""The holds on nodes that a reservation leaves, until its new place is written.

Others could else take the room, and the reservation lose both places once this process ends, or the
API server refuses the new place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reserver.reservations.binding_outcomes import BindingOutcome, slots_to_hold
from reserver.reservations.entry import Entry
from reserver.reservations.node_holds import Hold
from reserver.reservations.placement import clipped
from reserver.reservations.reservation import NOT_YET, Reservation, Written


def turns_on(holds: Iterable[Hold]) -> dict[str, Written]:
    """Return the turns of holds in the order of their nodes, by node."""
    return {hold.reservation.node: hold.since for hold in holds}


def unwritten(entries: Iterable[Entry]) -> list[Reservation]:
    """Return the reservations at their written place, if Reserver has chosen another one since."""
    found = []
    for entry in entries:
        place = clipped(entry.recorded, entry.reservation.most_slots)
        if place != entry.reservation.placed:
            found.append(replace(entry.reservation, placed=place))
    return found


def leaving_holds(written: Iterable[Reservation], turns: Mapping[str, Written]) -> tuple[Hold, ...]:
    """Return a hold for each node of written places, without amounts yet.

    Args:
        written: the reservation, as `unwritten` returns it.
        turns: the turns of its former holds.
    """
    parts = {part.node: each.on(part) for each in written for part in each.placed}
    return tuple(
        Hold(part, turns.get(node, NOT_YET), is_placed=True) for node, part in parts.items()
    )


def still_held(
    leaving: Iterable[Hold],
    written: Iterable[Reservation],
    outcomes: Sequence[BindingOutcome],
    free: tuple[Mapping[str, int], int],
) -> Iterator[tuple[Hold, int]]:
    """Yield each hold on a node that is left, with the slots to hold there beside the new place.

    Args:
        leaving: the holds.
        written: the reservation, as `unwritten` returns it.
        outcomes: the outcomes of its bindings in flight in which it holds.
        free: the slots to hold at the new place, by node, and without a node.
    """
    left, unplaced = free
    slots: dict[str, int] = {}
    for each in written if left or unplaced else ():
        there, _ = slots_to_hold(each, outcomes)
        slots |= {node: max(number, slots.get(node, 0)) for node, number in there.items()}
    for hold in leaving:
        node = hold.reservation.node
        yield hold, max(0, slots.get(node, 0) - left.get(node, 0))
