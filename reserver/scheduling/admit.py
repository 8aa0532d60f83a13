"""Whether reservations that are still to be written would be backed by what is free now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reserver.reservations.reservation import Reservation
from reserver.scheduling.state import State


class Lack(NamedTuple):
    """Why a reservation would not be backed.

    Attributes:
        at: which one it is.
        message: what is missing.
        never: it would not fit if the node were empty but for those before it.
    """

    at: int
    message: str
    never: bool


def judge_set(
    reservations: Sequence[Reservation],
    state: State,
    now: float,
    instead: Reservation | None = None,
) -> tuple[Lack, ...]:
    """Return which of these would not be backed beside each other at `now`; none if all would be.

    Unlike a pod's fit, which only compares what is held for others, this compares all that is asked
    for: whoever is promised a seat wants all of it.

    Args:
        reservations: what is to be written.
        state: the cluster.
        now: unix seconds.
        instead: the reservation that goes when these come.
    """
    state.ledger.advance(now)
    taken: dict[str, dict[str, int]] = {}
    given = {}
    if instead is not None:
        given = {instead.node: state.ledger.holding(instead.ref)}
    lacks = []
    for index, reservation in enumerate(reservations):
        node = reservation.node
        so_far = taken.setdefault(node, {})
        back = given.get(node, {})
        lack = _lack(index, reservation, state, so_far, back)
        if lack is None:
            for name, amount in reservation.resources.items():
                so_far[name] = so_far.get(name, 0) + amount * reservation.slots
        else:
            lacks.append(lack)
    return tuple(lacks)


def _lack(
    index: int,
    reservation: Reservation,
    state: State,
    taken: Mapping[str, int],
    back: Mapping[str, int],
) -> Lack | None:
    snapshot, node = state.snapshot, reservation.node
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return Lack(index, f"node {node!r} does not exist", never=True)
    short, never = [], False
    for name, amount in sorted(reservation.resources.items()):
        wanted = amount * reservation.slots + taken.get(name, 0)
        column = snapshot.columns.get(name)
        offered = 0 if column is None else int(snapshot.allocatable[row, column])
        used = 0
        if column is not None:
            used = int(snapshot.requested[row, column]) + int(snapshot.held[row, column])
        if wanted > offered - used + back.get(name, 0):
            short.append(name)
            never = never or wanted > offered
    if not short:
        return None
    why = "offers" if never else "has free"
    return Lack(index, f"{node} {why} too little {', '.join(short)}", never)
