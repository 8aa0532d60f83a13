"""The effect of the holds of nodes on a pod, in numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from reserver.cluster.capacity_matrix import Amounts
from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import Seat, fits_beside_holds, has_room, seats_by_node, with_yields
from reserver.scheduling.state import State

_MOST_ON_ONE_NODE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownHold:
    """A reservation that holds capacity.

    Attributes:
        reservation: its name.
        node: its node.
        expires_at: its expiry, unix seconds; None for never.
        seconds_left: seconds to the expiry; None for never.
        for_namespace: the public namespace in which the pod could claim it; empty without one.
    """

    reservation: str
    node: str
    expires_at: float | None
    seconds_left: float | None
    for_namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceExplanation:
    """One resource of one node, in millicores of cpu or base units.

    Attributes:
        requested_by_pod: the pod's request.
        allocatable: the node's allocatable amount.
        requested: the requests of its pods, including pods that are being bound.
        held_for_others: the amount that others' reservations hold.
        free: the amount left for the pod; negative if holds lack room.
    """

    requested_by_pod: int
    allocatable: int
    requested: int
    held_for_others: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    """The effect of the holds of one node on a pod.

    Attributes:
        node: its name.
        fits: whether the pod has room next to others' holds.
        is_seat: whether a reservation holds capacity for the pod there.
        reservations: the reservations that hold capacity there, at most 20, oldest first.
        resources: the amounts of each requested resource.
    """

    node: str
    fits: bool
    is_seat: bool
    reservations: tuple[ShownHold, ...]
    resources: dict[str, ResourceExplanation]


def show_hold(reservation: Reservation, now: float) -> ShownHold:
    """Return a reservation as a shown hold, at `now` (unix seconds)."""
    expires_at = reservation.expires_at
    return ShownHold(
        reservation=str(reservation.ref),
        node=reservation.node,
        expires_at=expires_at,
        seconds_left=None if expires_at is None else expires_at - now,
    )


def explain_nodes(
    pod: Pod, names: Collection[str], state: State, now: float
) -> tuple[NodeExplanation, ...]:
    """Return the effect of the holds of some nodes on a pod, in numbers."""
    known = {name: None for name in names if state.snapshot.has_node(name)}
    own = seats_by_node(pod, state.ledger.seats(pod, known), state.ledger)
    shares = with_yields(own, pod, known, state.ledger)
    rows = state.snapshot.rows(list(known))
    is_there = np.array([name == pod.node for name in known], dtype=np.bool_)
    room = has_room(pod, state.snapshot, rows) | is_there  # The pod's own request is counted there.
    fits = (room & fits_beside_holds(pod, state.snapshot, shares)[rows]).tolist()
    return tuple(
        _node(pod, name, state, own.get(name), now, fits=fit)
        for name, fit in zip(known, fits, strict=True)
    )


def _node(
    pod: Pod, name: str, state: State, own: Seat | None, now: float, *, fits: bool
) -> NodeExplanation:
    holding = zip(state.ledger.holding_on(name), range(_MOST_ON_ONE_NODE), strict=False)
    return NodeExplanation(
        node=name,
        fits=fits,
        is_seat=own is not None,
        reservations=tuple(show_hold(reservation, now) for reservation, _ in holding),
        resources={
            resource: _resource(
                amount,
                state.snapshot.amounts(name, resource),
                _own(own, resource, name, state) if own else 0,
            )
            for resource, amount in pod.requests.items()
            if resource in state.snapshot.columns
        },
    )


def _own(seat: Seat, resource: str, node: str, state: State) -> int:
    """Return the held amount of a node that belongs to the pod with this seat."""
    if NODES in seat.slot:
        return state.snapshot.amounts(node, resource).held
    return seat.slot.get(resource, 0) - seat.returned.get(resource, 0)


def _resource(amount: int, amounts: Amounts, slot: int) -> ResourceExplanation:
    held = amounts.held - slot
    return ResourceExplanation(
        requested_by_pod=amount,
        allocatable=amounts.allocatable,
        requested=amounts.requested,
        held_for_others=held,
        free=amounts.allocatable - amounts.requested - held,
    )
