"""Whether a pod fits on a node, and every reason why it does not.

`fit` and `fits` agree with kube-scheduler on all that `docs/fit.md` lists, and add what is held:
what P may use on N = allocatable − requests of the pods there − what reservations hold there + the
slots that P would claim there.

For nodes that kube-scheduler itself has named, `fits_beside_holds` is enough: only resources that P
requests *and* that somebody else holds are compared. All else is kube-scheduler's business there,
and its picture of it is fresher than ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Int64s, Rows, Snapshot
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView
from reserver.scheduling.node_rules import node_refusals
from reserver.scheduling.pod_affinity import affinity_refusals
from reserver.scheduling.reasons import HELD, UNKNOWN_NODE, Reason, Refusal, insufficient
from reserver.scheduling.spread import spread_refusals
from reserver.scheduling.volumes import volume_refusals

EXEMPT_PRIORITY = 2_000_000_000
"""From this priority on holds refuse nothing (system-cluster-critical, system-node-critical):
a hold must not keep a node agent from its node."""

_MOST = 2**61
"""Beyond what any node has; more would not fit the sums."""

ByNode = Mapping[str, Mapping[str, int]]
"""Amounts by node and resource."""

_NOTHING: ByNode = MappingProxyType({})


class Seat(NamedTuple):
    """What an owner may use on one node beside what is free there.

    Attributes:
        slot: what it would claim there: one slot of each of its reservations.
        later: what is held there by reservations that were written after all of these. They do not
            count against the slot: room that was taken when they were written is not theirs.
        yielded: what is held there for others that its priority may take.
    """

    slot: Mapping[str, int]
    later: Mapping[str, int]
    yielded: Mapping[str, int] = MappingProxyType({})


Seats = Mapping[str, Seat]
"""An owner's seat on each node where it has one (`seats_by_node`)."""

NO_SEATS: Seats = MappingProxyType({})


def fit(pod: Pod, node: str, snapshot: Snapshot, own: Seats = NO_SEATS) -> tuple[Reason, ...]:
    """Return every reason why a pod does not fit on a node; none when it fits.

    Args:
        pod: the pod, not on a node yet.
        node: the node's name.
        snapshot: the cluster.
        own: the pod's seats.
    """
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return (UNKNOWN_NODE,)
    found = (reason for reason, rows in refusals(pod, snapshot, own) if rows[row])
    return tuple(dict.fromkeys(found))


def fits(pod: Pod, snapshot: Snapshot, own: Seats = NO_SEATS) -> Bools:
    """Return, for each row of the snapshot, whether a pod fits on its node.

    A row whose Node object is not known does not fit. The arguments are those of `fit`.
    """
    return _free_of(refusals(pod, snapshot, own), snapshot)


def allowed(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row of the snapshot, whether a pod may go there if there is room."""
    return _free_of(_constraint_refusals(pod, snapshot), snapshot)


def _free_of(refusals: Iterable[Refusal], snapshot: Snapshot) -> Bools:
    free = snapshot.exists.copy()
    for _, rows in refusals:
        free &= ~rows
        if not free.any():
            break
    return free


def refusals(pod: Pod, snapshot: Snapshot, own: Seats) -> Iterator[Refusal]:
    """Yield what refuses nodes, in the order of kube-scheduler's default plugins.

    A reason may come more than once. The arguments are those of `fit`.
    """
    yield from node_refusals(pod, snapshot)
    yield from _lacks(pod, snapshot)
    yield from _neighbour_refusals(pod, snapshot)
    yield _held(pod, snapshot, own)


def _constraint_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield what refuses nodes, resources aside."""
    return chain(node_refusals(pod, snapshot), _neighbour_refusals(pod, snapshot))


def _neighbour_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    yield from volume_refusals(pod, snapshot)
    yield from spread_refusals(pod, snapshot)
    yield from affinity_refusals(pod, snapshot)


def _lacks(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield each resource of which nodes have too little, holds aside (noderesources/fit.go)."""
    for resource, amount in pod.requests.items():
        if not amount:
            continue
        column = snapshot.columns.get(resource)
        if column is None:  # No node offers it.
            lacking = np.ones(len(snapshot.exists), dtype=np.bool_)
        else:
            free = snapshot.allocatable[:, column] - snapshot.requested[:, column]
            lacking = free < min(amount, _MOST)
        yield Refusal(insufficient(resource), lacking)


def _held(pod: Pod, snapshot: Snapshot, own: Seats) -> Refusal:
    """Return where there is room, but held for others."""
    rows = np.flatnonzero(snapshot.has_holds & snapshot.exists)
    held = np.zeros(len(snapshot.exists), dtype=np.bool_)
    held[rows] = has_room(pod, snapshot, rows) & ~fits_beside_holds(pod, snapshot, rows, own)
    return Refusal(HELD, held)


def is_exempt(pod: Pod) -> bool:
    """Return whether holds do not apply to a pod."""
    return pod.priority >= EXEMPT_PRIORITY


def seats_by_node(seats: Iterable[Reservation], ledger: LedgerView) -> dict[str, Seat]:
    """Return an owner's seat on each node where reservations hold capacity for it now."""
    on_node: dict[str, list[Reservation]] = {}
    for seat in seats:
        on_node.setdefault(seat.node, []).append(seat)
    return {
        node: Seat(_total(seat.resources for seat in own), ledger.held_after(node, own))
        for node, own in on_node.items()
    }


def with_yields(
    own: Mapping[str, Seat], pod: Pod, nodes: Iterable[str], ledger: LedgerView
) -> dict[str, Seat]:
    """Return an owner's seats, and on some nodes what others hold and its priority may take."""
    shares = dict(own)
    for node, yielded in ledger.yielding(pod, nodes).items():
        shares[node] = own.get(node, Seat({}, {}))._replace(yielded=yielded)
    return shares


def _total(slots: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for slot in slots:
        for resource, amount in slot.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def in_the_way(pod: Pod, node: str, ledger: LedgerView) -> Reservation | None:
    """Return the oldest reservation of others that holds capacity on a node, None without one."""
    return next((r for r in ledger.holding_on(node) if is_in_the_way(r, pod)), None)


def is_in_the_way(reservation: Reservation, pod: Pod) -> bool:
    """Return whether what a reservation holds is held against a pod."""
    return not reservation.is_owned_by(pod) and not reservation.yields_to(pod.priority)


def fits_beside_holds(
    pod: Pod, snapshot: Snapshot, rows: Rows, own: Seats, taken: ByNode = _NOTHING
) -> Bools:
    """Return, for each row, whether the pod fits beside what is held there for others.

    Args:
        pod: the pod, not placed yet.
        snapshot: capacity.
        rows: rows to look at; each one known.
        own: the pod's seats (`seats_by_node`), and what it may take besides (`with_yields`).
        taken: what is taken by node beside what the snapshot shows; negative for what comes free.

    Returns:
        A bool array in the shape of `rows`. A node with holds whose Node object is unknown does
        not fit: nobody can tell what room it has.
    """
    if is_exempt(pod):
        return np.ones(len(rows), dtype=np.bool_)
    columns, amounts = wanted(pod, snapshot)
    at = np.ix_(rows, columns)
    slot = cells({node: seat.slot for node, seat in own.items()}, snapshot, rows, columns)
    held = snapshot.held[at] - slot
    free = snapshot.allocatable[at] - snapshot.requested[at] - held
    free -= cells(taken, snapshot, rows, columns)
    fits_each = (held <= 0) | (free >= amounts)
    if own:
        yielded = cells({n: seat.yielded for n, seat in own.items()}, snapshot, rows, columns)
        fits_each |= (held <= yielded) | (free + yielded >= amounts)
        later = cells({node: seat.later for node, seat in own.items()}, snapshot, rows, columns)
        fits_each |= (amounts <= slot) & (free + later >= amounts)
    fits = np.all(fits_each, axis=1)
    judged: Bools = fits & (snapshot.exists[rows] | ~snapshot.has_holds[rows])
    return judged


def has_room(pod: Pod, snapshot: Snapshot, rows: Rows) -> Bools:
    """Return, for each row, whether all that the pod requests is unused there, holds aside."""
    columns, amounts = wanted(pod, snapshot)
    if any(amount and name not in snapshot.columns for name, amount in pod.requests.items()):
        return np.zeros(len(rows), dtype=np.bool_)  # No node offers it.
    at = np.ix_(rows, columns)
    free = snapshot.allocatable[at] - snapshot.requested[at]
    room: Bools = np.all(free >= amounts, axis=1)
    return room


def wanted(pod: Pod, snapshot: Snapshot) -> tuple[Rows, Int64s]:
    """Return the columns of what a pod requests of resources that nodes offer, and the amounts."""
    known = {
        snapshot.columns[name]: amount
        for name, amount in pod.requests.items()
        if amount and name in snapshot.columns
    }
    columns = np.fromiter(known, dtype=np.intp, count=len(known))
    amounts = (min(amount, _MOST) for amount in known.values())
    return columns, np.fromiter(amounts, dtype=np.int64, count=len(known))


def dense(amounts: Mapping[str, int], snapshot: Snapshot) -> Int64s:
    """Return amounts as one row of the matrix, without those that no node offers."""
    row = np.zeros(snapshot.held.shape[1], dtype=np.int64)
    for resource, amount in amounts.items():
        column = snapshot.columns.get(resource)
        if column is not None:
            row[column] = max(-_MOST, min(amount, _MOST))
    return row


def cells(by_node: ByNode, snapshot: Snapshot, rows: Rows, columns: Rows) -> Int64s:
    """Return amounts by node in the shape of rows × columns, 0 for all other nodes."""
    known = [
        (row, amounts) for n, amounts in by_node.items() if (row := snapshot.row(n)) is not None
    ]
    if not known:
        return np.zeros((len(rows), len(columns)), dtype=np.int64)
    nothing = dense({}, snapshot)
    table = np.stack([*(dense(amounts, snapshot) for _, amounts in known), nothing])
    index_of = np.full(len(snapshot.exists), len(known), dtype=np.intp)
    index_of[[row for row, _ in known]] = np.arange(len(known))
    cells: Int64s = table[np.ix_(index_of[rows], columns)]
    return cells
