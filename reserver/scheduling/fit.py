"""Decides whether a pod fits on a node, with every reason why it does not.

`fit` and `fits` agree with kube-scheduler on all rules in `docs/fit.md`, and add the holds:
room of P on N = allocatable − requests of the pods on N − holds on N + the slots that P would claim
on N.

For nodes that kube-scheduler has named, `fits_beside_holds` is enough: it compares only resources
that P requests *and* that other owners hold, or get back once a pod goes. kube-scheduler has judged
all others, with a fresher view.

The matrix of the snapshot is clamped, and correct where there is no room. Where amounts are taken
out of a sum (a seat, yielding holds, victims), exact integers are used (docs/adr/0015).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Amounts, Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s, clamped
from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.view import LedgerView
from reserver.scheduling.neighbours import affinity_refusals, spread_refusals
from reserver.scheduling.node_rules import node_refusals, volume_refusals
from reserver.scheduling.reasons import HELD, UNKNOWN_NODE, Reason, Refusal, insufficient
from reserver.scheduling.request_arrays import ByNode, request_columns

EXEMPT_PRIORITY = 2_000_000_000
"""Pods from this priority on are exempt from holds in trusted namespaces, as node agents are."""

_MOST_UNKNOWN = 16

_NOTHING: ByNode = MappingProxyType({})


class Seat(NamedTuple):
    """The held room that an owner may use on one node in addition to the free room.

    Attributes:
        slot: the resources that it would claim there: one slot of each of its reservations.
        later: the amounts held there behind the oldest of its reservations whose slots cover the
            request. They do not count against the slot: these reservations came later.
        yielded: the amounts of others' holds there that it may take or borrow.
        returned: the borrowed part of the slot, which the matrix does not count as held.
    """

    slot: Mapping[str, int]
    later: Mapping[str, int]
    yielded: Mapping[str, int] = MappingProxyType({})
    returned: Mapping[str, int] = MappingProxyType({})


Seats = Mapping[str, Seat]
"""An owner's seats by node (`seats_by_node`)."""

NO_SEATS: Seats = MappingProxyType({})
NO_SEAT = Seat({}, {})


def fit(pod: Pod, node: str, snapshot: Snapshot, own: Seats = NO_SEATS) -> tuple[Reason, ...]:
    """Return every reason why a pod does not fit on a node; empty if it fits.

    Args:
        pod: an unbound pod.
        own: the pod's seats.
    """
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return (UNKNOWN_NODE,)
    found = (reason for reason, rows in refusals(pod, snapshot, own) if rows[row])
    return tuple(dict.fromkeys(found))


def fits(pod: Pod, snapshot: Snapshot, own: Seats = NO_SEATS) -> Bools:
    """Return, for each row of the snapshot, whether a pod fits on its node.

    A row without a Node object does not fit. The arguments are those of `fit`.
    """
    return fits_where(pod, snapshot, fits_beside_holds(pod, snapshot, own))


def fits_where(pod: Pod, snapshot: Snapshot, unheld: Bools) -> Bools:
    """Return the result of `fits`, given the result of `fits_beside_holds`."""
    free: Bools = snapshot.exists & unheld
    judges = (node_refusals, _lacks, _neighbour_refusals)  # The last takes longest.
    refuse(free, chain.from_iterable(judge(pod, snapshot) for judge in judges))
    return free


def allowed(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row of the snapshot, whether constraints allow a pod there."""
    free = snapshot.exists.copy()
    refuse(free, constraint_refusals(pod, snapshot))
    return free


def refuse(free: Bools, refusals: Iterator[Refusal]) -> None:
    """Remove refused rows from the free rows; stop once no free row is left."""
    while free.any() and (refusal := next(refusals, None)):
        free &= ~refusal.rows


def refusals(pod: Pod, snapshot: Snapshot, own: Seats) -> Iterator[Refusal]:
    """Yield all refusals of nodes, in the order of kube-scheduler's default plugins.

    A reason may come more than once. The arguments are those of `fit`.
    """
    yield from node_refusals(pod, snapshot)
    yield from _lacks(pod, snapshot)
    yield from _neighbour_refusals(pod, snapshot)
    yield _held(pod, snapshot, own)


def constraint_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals of nodes except for resources and holds."""
    return chain(node_refusals(pod, snapshot), _neighbour_refusals(pod, snapshot))


def _neighbour_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    yield from volume_refusals(pod, snapshot)
    yield from spread_refusals(pod, snapshot)
    yield from affinity_refusals(pod, snapshot)


def _lacks(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield each resource of which nodes have too little, without holds (noderesources/fit.go).

    Of resources that no node offers, only the first few: a pod may request any number.
    """
    unknown = 0
    for resource, amount in pod.requests.items():
        column = snapshot.columns.get(resource)
        if column is not None and amount:
            free = snapshot.allocatable[:, column] - snapshot.requested[:, column]
            yield Refusal(insufficient(resource), free < clamped(amount))
        elif amount and unknown < _MOST_UNKNOWN:
            unknown += 1
            yield Refusal(insufficient(resource), np.ones(len(snapshot.exists), dtype=np.bool_))


def _held(pod: Pod, snapshot: Snapshot, own: Seats) -> Refusal:
    """Return the rows whose room is held for others, or comes back to them."""
    held: Bools = snapshot.guarded & snapshot.exists & ~fits_beside_holds(pod, snapshot, own)
    rows = np.flatnonzero(held)
    held[rows] = has_room(pod, snapshot, rows)
    return Refusal(HELD, held)


def is_exempt(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether a pod is exempt from holds.

    Any tenant may use the system's priority classes if no quota forbids it, so the namespace has to
    be trusted as well.
    """
    return pod.priority >= EXEMPT_PRIORITY and pod.name.namespace in snapshot.exempt_namespaces


def seats_by_node(pod: Pod, seats: Iterable[Reservation], ledger: LedgerView) -> dict[str, Seat]:
    """Return an owner's seat on each node on which reservations hold capacity for it now."""
    on_node: dict[str, list[Reservation]] = {}
    for seat in seats:
        on_node.setdefault(seat.node, []).append(seat)
    return {
        node: Seat(
            total(seat.resources for seat in own),
            ledger.later(node, own, pod.requests),
            returned=ledger.returned(node, own),
        )
        for node, own in on_node.items()
    }


def with_yields(
    own: Mapping[str, Seat], pod: Pod, nodes: Iterable[str], ledger: LedgerView
) -> dict[str, Seat]:
    """Return an owner's seats with the amounts of others' holds that it may take or borrow."""
    shares = dict(own)
    for node, yielded in ledger.yielding(pod, nodes).items():
        shares[node] = own.get(node, NO_SEAT)._replace(yielded=yielded)
    return shares


def in_the_way(pod: Pod, nodes: Iterable[str], ledger: LedgerView) -> Iterator[Reservation | None]:
    """Yield, for each node, the oldest hold there that counts against a pod, or None.

    The reservations that the pod may claim are computed once for all nodes.
    """
    own = ledger.owned_by(pod)
    for node in nodes:
        holding = ledger.holding_on(node)
        yield next((each for each in holding if is_in_the_way(each, pod, own)), None)


def is_in_the_way(reservation: Reservation, pod: Pod, own: Container[Ref]) -> bool:
    """Return whether a hold counts against a pod; `own` are the refs that the pod may claim."""
    is_open = reservation.yields_to(pod.priority) or reservation.lends_to(pod)
    return reservation.ref not in own and not is_open


def fits_beside_holds(
    pod: Pod,
    snapshot: Snapshot,
    own: Seats = NO_SEATS,
    taken: ByNode = _NOTHING,
    conceded: Int64s | None = None,
) -> Bools:
    """Return, for each row, whether a pod fits next to others' holds.

    This takes one comparison for each resource, and a sum for each node in the arguments.

    Args:
        pod: an unbound pod.
        snapshot: capacity.
        own: the pod's seats (`seats_by_node`), with amounts that it may take (`with_yields`).
        taken: amounts by node that are taken beyond the snapshot; negative for freed amounts.
        conceded: the amounts of others' holds that it may take on all other nodes
            (`Concessions`). `own` names the nodes whose holds exceed a cell, too.

    Returns:
        A bool array of rows, perhaps read-only. A node with holds but without a Node object does
        not fit, as its room is unknown. Only owners fit on a node with unreadable objects.
    """
    if is_exempt(pod, snapshot):
        return np.ones(len(snapshot.exists), dtype=np.bool_)
    found = snapshot.headroom.fits(pod.requests)
    if conceded is not None:
        found = found | _fits_into(pod, snapshot, conceded)
    is_daemon = bool(snapshot.whole_nodes) and snapshot.residents.belongs(pod)
    if is_daemon:
        found = found | (snapshot.whole & snapshot.exists)
    if not (own or taken or snapshot.unreadable_nodes):
        return found
    free = found.copy()
    asked = {name: n for name, n in pod.requests.items() if n and name in snapshot.columns}
    special = {row: n for n in own.keys() | taken.keys() if (row := snapshot.row(n)) is not None}
    for row, node in special.items():
        seat, gone = own.get(node, NO_SEAT), taken.get(node, {})
        is_known = snapshot.exists[row] or not snapshot.guarded[row]
        if snapshot.whole[row]:
            is_owner = NODES in seat.slot and snapshot.leaves(node, asked, gone)
            free[row] = is_known and (is_daemon or is_owner)
            continue
        free[row] = is_known and all(
            _fits_exactly(amount, snapshot.amounts(node, name), seat, name, gone.get(name, 0))
            for name, amount in asked.items()
        )
    if snapshot.unreadable_nodes:  # Rare; an owner's seat stays its own.
        unreadable = snapshot.has_unreadable & snapshot.guarded
        unreadable[[row for row, node in special.items() if own.get(node, NO_SEAT).slot]] = False
        free &= ~unreadable
    return free


def _fits_into(pod: Pod, snapshot: Snapshot, conceded: Int64s) -> Bools:
    """Return, for each row, whether a pod fits next to the holds that are not conceded to it."""
    fits: Bools = (snapshot.exists | ~snapshot.guarded) & ~snapshot.whole
    for column, amount in zip(*request_columns(pod, snapshot), strict=True):
        offered, requested = snapshot.allocatable[:, column], snapshot.requested[:, column]
        held, yielded = snapshot.held[:, column], conceded[column]
        is_free = (held <= yielded) & (snapshot.returning[:, column] == 0)
        fits &= is_free | (offered - requested - held + yielded >= amount)
    return fits


def _fits_exactly(amount: int, amounts: Amounts, seat: Seat, resource: str, taken: int) -> bool:
    """Return whether enough of a resource is not held for others, with exact sums."""
    slot = seat.slot.get(resource, 0)
    held = amounts.held + seat.returned.get(resource, 0) - slot
    yielded = seat.yielded.get(resource, 0)
    free = amounts.allocatable - amounts.requested - held - taken
    is_own = amount <= slot and free + seat.later.get(resource, 0) >= amount
    is_free = held <= yielded and not amounts.returning
    return is_free or free + yielded >= amount or is_own


def has_room(pod: Pod, snapshot: Snapshot, rows: Rows) -> Bools:
    """Return, for each row, whether the pod's requests are free there, without holds."""
    columns, amounts = request_columns(pod, snapshot)
    if any(amount and name not in snapshot.columns for name, amount in pod.requests.items()):
        return np.zeros(len(rows), dtype=np.bool_)  # No node offers it.
    at = np.ix_(rows, columns)
    room: Bools = np.all(snapshot.allocatable[at] - snapshot.requested[at] >= amounts, axis=1)
    return room
