"""Where the room has changed, and so whose status may have."""

from __future__ import annotations

from collections.abc import Callable

from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State


class Room:
    """Tells of each reservation whose node has become short of room, or is not any more."""

    def __init__(self, touched: Callable[[Ref], None]) -> None:
        """Tell `touched` of reservations."""
        self._touched = touched
        self._short_nodes = ShortNodes({}, frozenset())

    def look(self, state: State, now: float) -> ShortNodes:
        """Return where room is short at `now` (unix seconds), and tell of what has changed."""
        state.ledger.advance(now)
        before, after = self._short_nodes, ShortNodes.of(state.snapshot)
        self._short_nodes = after
        if after.offered != before.offered:  # Rare: some node has a kind of device that none had.
            for reservation, _ in state.ledger:
                self._touched(reservation.ref)
        for node in before.by_node.keys() | after.by_node.keys():
            if before.by_node.get(node, ()) != after.by_node.get(node, ()):
                for reservation in state.ledger.holding_on(node):
                    self._touched(reservation.ref)
        return after
