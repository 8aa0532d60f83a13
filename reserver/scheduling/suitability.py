"""Decides whether a placed reservation may stay, or its new place."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from reserver.cluster.guests import guests_on
from reserver.cluster.quantity import is_less
from reserver.reservations.placement import joined
from reserver.reservations.reservation import Reservation
from reserver.scheduling.closures import Nodes
from reserver.scheduling.fit import allowed
from reserver.scheduling.node_limits import too_many
from reserver.scheduling.placement import Placed, placing, slot_pod
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State


class Suits(NamedTuple):
    """Whether the place of a reservation still suits it.

    Attributes:
        is_allowed: whether its constraints allow its nodes.
        has_room: whether its nodes have room for all their holds.
    """

    is_allowed: bool
    has_room: bool


def suits(reservation: Reservation, state: State) -> Suits:
    """Return whether the place of a reservation suits its present spec."""
    snapshot = state.snapshot
    pod = slot_pod(reservation)
    rows = snapshot.rows([part.node for part in reservation.parts])
    may_go = allowed(pod, snapshot)
    is_allowed = bool(np.all(may_go[rows] & (rows >= 0)))
    if is_allowed and reservation.volume_claims:
        is_allowed = not too_many(reservation, state, [part.node for part in reservation.parts])
    if reservation.is_whole:
        return Suits(is_allowed, is_allowed and _is_for_itself(reservation, state))
    columns, _ = request_columns(pod, snapshot)
    at = np.ix_(rows, columns)
    free = snapshot.allocatable[at] - snapshot.requested[at] - snapshot.held[at]
    return Suits(is_allowed, bool(np.all(free >= 0)))


def _is_for_itself(reservation: Reservation, state: State) -> bool:
    """Return whether only owners use the whole nodes of a reservation."""
    nodes = [part.node for part in reservation.placed]
    if any(is_less(state.ledger.held_on(node), reservation.resources) for node in nodes):
        return False
    return all(reservation.is_owned_by(each.pod) for each in guests_on(nodes, state.snapshot))


def moving_off(
    reservation: Reservation, leaving: Nodes, state: State
) -> Generator[None, None, Placed]:
    """Find nodes for the unclaimed slots on nodes to leave; claimed slots stay."""
    kept, slots = state.ledger.staying(reservation.ref, leaving)
    if not slots:
        return Placed()
    found = yield from placing(reservation, slots, state)
    if not found.parts or state.ledger.staying(reservation.ref, leaving) != (kept, slots):
        return found._replace(parts=())  # A pod may have claimed a slot meanwhile.
    return found._replace(parts=joined(kept, found.parts))
