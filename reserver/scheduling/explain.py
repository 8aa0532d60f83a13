"""Why a pod may or may not have nodes, in numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import Seat, fits_beside_holds, is_exempt, seats_by_node
from reserver.scheduling.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAccount:
    """One resource of one node: millicores of cpu, base units of all else.

    Attributes:
        requested_by_pod: what the pod wants.
        allocatable: what the node offers.
        requested: what pods there take, those being bound included.
        held_for_others: what reservations of others hold.
        free: what is left for the pod; negative where holds lack room.
    """

    requested_by_pod: int
    allocatable: int
    requested: int
    held_for_others: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    """What the holds of one node mean for a pod.

    Attributes:
        node: its name.
        fits: the pod fits beside what is held there for others.
        is_seat: a reservation holds capacity for the pod there.
        reservations: the names of those that hold capacity there, at most 20, oldest first.
        resources: the account of each resource that the pod requests.
    """

    node: str
    fits: bool
    is_seat: bool
    reservations: tuple[str, ...]
    resources: dict[str, ResourceAccount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pod may or may not have nodes.

    Attributes:
        pod: ``namespace/name``.
        node: where it is bound already; empty while it is not.
        exempt: its priority is so high that holds do not apply.
        owns: the reservations that hold capacity for it now.
        nodes_without_holds: on so many nodes nothing is held: reservations do not matter there.
        nodes_with_holds: one account a node, at most `MOST_NODES`, seats first.
        truncated: so many nodes with holds were left out.
    """

    pod: str
    node: str
    exempt: bool
    owns: tuple[str, ...]
    nodes_without_holds: int
    nodes_with_holds: tuple[NodeExplanation, ...]
    truncated: int


MOST_NODES = 200
_MOST_RESERVATIONS = 20


def explain(pod: Pod, state: State, now: float, only: Collection[str] | None = None) -> Explanation:
    """Return what the holds of each node mean for a pod.

    Args:
        pod: the pod.
        state: the cluster.
        now: unix seconds.
        only: the nodes to look at; None for all.
    """
    state.ledger.advance(now)
    snapshot = state.snapshot
    seats = state.ledger.seats(pod.name)
    own = {seat.node for seat in seats}
    names = snapshot.node_names() if only is None else list(filter(snapshot.has_node, only))
    held = [name for name in names if state.ledger.held_on(name)]
    held.sort(key=lambda name: (name not in own, name))
    return Explanation(
        pod=str(pod.name),
        node=pod.node,
        exempt=is_exempt(pod),
        owns=tuple(str(seat.ref) for seat in seats),
        nodes_without_holds=len(names) - len(held),
        nodes_with_holds=tuple(_node(pod, name, state, seats) for name in held[:MOST_NODES]),
        truncated=max(0, len(held) - MOST_NODES),
    )


def _node(pod: Pod, name: str, state: State, seats: tuple[Reservation, ...]) -> NodeExplanation:
    own = seats_by_node((seat for seat in seats if seat.node == name), state.ledger)
    rows = state.snapshot.rows((name,))
    names = [
        str(r.ref)
        for r, _ in zip(state.ledger.holding_on(name), range(_MOST_RESERVATIONS), strict=False)
    ]
    return NodeExplanation(
        node=name,
        fits=bool(fits_beside_holds(pod, state.snapshot, rows, own).all()),
        is_seat=bool(own),
        reservations=tuple(names),
        resources={
            resource: _account(resource, amount, int(rows[0]), state.snapshot, own.get(name))
            for resource, amount in pod.requests.items()
            if resource in state.snapshot.columns
        },
    )


def _account(
    resource: str, amount: int, row: int, snapshot: Snapshot, own: Seat | None
) -> ResourceAccount:
    column = snapshot.columns[resource]
    allocatable = int(snapshot.allocatable[row, column])
    requested = int(snapshot.requested[row, column])
    held = int(snapshot.held[row, column]) - (own.slot.get(resource, 0) if own else 0)
    return ResourceAccount(
        requested_by_pod=amount,
        allocatable=allocatable,
        requested=requested,
        held_for_others=held,
        free=allocatable - requested - held,
    )
