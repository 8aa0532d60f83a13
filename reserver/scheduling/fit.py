"""Whether a pod fits on a node, and every reason why it does not.

`fit` and `fits` agree with kube-scheduler on all that `docs/fit.md` lists, and add what is held:
what P may use on N = allocatable − requests of the pods there − what reservations hold there + the
slots that P would claim there.

For nodes that kube-scheduler itself has named, `fits_beside_holds` is enough: only resources that P
requests *and* that somebody else holds, or gets back once a pod goes, are compared. All else is
kube-scheduler's business there, and its picture of it is fresher than ours.

The matrix of the snapshot is clamped, and says rightly where there is no room. Where something is
taken out of a sum (a seat, what yields, victims) all is computed in exact integers (docs/adr/0015).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Amounts, Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import CELL_MAX, Int64s, clamped
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
"""From this priority on holds refuse nothing in the namespaces trusted with that: no node agent."""

_MOST_UNKNOWN = 16

_NOTHING: ByNode = MappingProxyType({})


class Seat(NamedTuple):
    """The held room that an owner may use on one node, besides the free room.

    Attributes:
        slot: what it would claim there: a slot of each of its reservations.
        later: what is held there by reservations that stand behind those whose slots cover the
            pod's request, the oldest of its own. They do not count against the slot: room that was
            taken when they were written is not theirs.
        yielded: what is held there for others that its priority may take, or that it may borrow.
        returned: how much of the slot is borrowed, so that it is held against nobody until then.
    """

    slot: Mapping[str, int]
    later: Mapping[str, int]
    yielded: Mapping[str, int] = MappingProxyType({})
    returned: Mapping[str, int] = MappingProxyType({})


Seats = Mapping[str, Seat]
"""An owner's seat on each node where it has one (`seats_by_node`)."""

NO_SEATS: Seats = MappingProxyType({})
NO_SEAT = Seat({}, {})


def fit(pod: Pod, node: str, snapshot: Snapshot, own: Seats = NO_SEATS) -> tuple[Reason, ...]:
    """Return every reason why a pod does not fit on a node; none if it fits.

    Args:
        pod: the pod, not on a node yet.
        own: the pod's seats.
    """
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return (UNKNOWN_NODE,)
    found = (reason for reason, rows in refusals(pod, snapshot, own) if rows[row])
    return tuple(dict.fromkeys(found))


def fits(pod: Pod, snapshot: Snapshot, own: Seats = NO_SEATS) -> Bools:
    """Return, for each row of the snapshot, whether a pod fits on its node.

    A row without a known Node object does not fit. The arguments are those of `fit`.
    """
    return fits_where(pod, snapshot, fits_beside_holds(pod, snapshot, own))


def fits_where(pod: Pod, snapshot: Snapshot, beside: Bools) -> Bools:
    """Return the same where it is known already whether the pod fits beside the holds."""
    free: Bools = snapshot.exists & beside
    judges = (node_refusals, _lacks, _neighbour_refusals)  # The last takes longest.
    refuse(free, chain.from_iterable(judge(pod, snapshot) for judge in judges))
    return free


def allowed(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row of the snapshot, whether a pod may go there if there is room."""
    free = snapshot.exists.copy()
    refuse(free, constraint_refusals(pod, snapshot))
    return free


def refuse(free: Bools, refusals: Iterator[Refusal]) -> None:
    """Take what is refused from the free rows; what comes after the last of them is not judged."""
    while free.any() and (refusal := next(refusals, None)):
        free &= ~refusal.rows


def refusals(pod: Pod, snapshot: Snapshot, own: Seats) -> Iterator[Refusal]:
    """Yield what refuses nodes, in the order of kube-scheduler's default plugins.

    A reason may come more than once. The arguments are those of `fit`.
    """
    yield from node_refusals(pod, snapshot)
    yield from _lacks(pod, snapshot)
    yield from _neighbour_refusals(pod, snapshot)
    yield _held(pod, snapshot, own)


def constraint_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield what refuses nodes, resources aside."""
    return chain(node_refusals(pod, snapshot), _neighbour_refusals(pod, snapshot))


def _neighbour_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    yield from volume_refusals(pod, snapshot)
    yield from spread_refusals(pod, snapshot)
    yield from affinity_refusals(pod, snapshot)


def _lacks(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield each resource of which nodes have too little, holds aside (noderesources/fit.go).

    Of those that no node offers, only the first few: a pod may ask for any number.
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
    """Return the rows where there is room, but it is held for others, or comes back to them."""
    held: Bools = snapshot.guarded & snapshot.exists & ~fits_beside_holds(pod, snapshot, own)
    rows = np.flatnonzero(held)
    held[rows] = has_room(pod, snapshot, rows)
    return Refusal(HELD, held)


def is_exempt(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether holds do not apply to a pod.

    Any tenant may ask for the system's priority classes where no quota forbids it, so it takes one
    of the namespaces that are trusted with them, too.
    """
    return pod.priority >= EXEMPT_PRIORITY and pod.name.namespace in snapshot.exempt_namespaces


def seats_by_node(pod: Pod, seats: Iterable[Reservation], ledger: LedgerView) -> dict[str, Seat]:
    """Return an owner's seat on each node where reservations hold capacity for it now."""
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
    """Return an owner's seats, and what its priority may take of others' holds on some nodes."""
    shares = dict(own)
    for node, yielded in ledger.yielding(pod, nodes).items():
        shares[node] = own.get(node, NO_SEAT)._replace(yielded=yielded)
    return shares


def in_the_way(pod: Pod, nodes: Iterable[str], ledger: LedgerView) -> Iterator[Reservation | None]:
    """Yield, for each node, the oldest reservation of others that holds capacity there, or None.

    What the pod may claim is found once, however many nodes there are.
    """
    own = ledger.owned_by(pod)
    for node in nodes:
        holding = ledger.holding_on(node)
        yield next((each for each in holding if is_in_the_way(each, pod, own)), None)


def is_in_the_way(reservation: Reservation, pod: Pod, own: Container[Ref]) -> bool:
    """Return whether a hold counts against a pod; `own`: what the pod may claim."""
    is_open = reservation.yields_to(pod.priority) or reservation.lends_to(pod)
    return reservation.ref not in own and not is_open


def fits_beside_holds(
    pod: Pod,
    snapshot: Snapshot,
    own: Seats = NO_SEATS,
    taken: ByNode = _NOTHING,
    conceded: Int64s | None = None,
) -> Bools:
    """Return, for each row, whether the pod fits beside what is held there for others.

    That is one comparison for each resource, and a sum for each node that the arguments name.

    Args:
        pod: the pod, not placed yet.
        snapshot: capacity.
        own: the pod's seats (`seats_by_node`), and what it may take besides (`with_yields`).
        taken: what is taken by node beside what the snapshot shows; negative for what comes free.
        conceded: what the pod may take of others' holds on all other nodes (`Concessions`).

    Returns:
        A bool array, rows, that may be read-only. A node with holds whose Node object is unknown
        does not fit: nobody can tell what room it has. Where something cannot be read only owners
        do.
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
    if snapshot.unreadable_nodes:  # Rare: an owner's seat is its own all the same.
        unreadable = snapshot.has_unreadable & snapshot.guarded
        unreadable[[row for row, node in special.items() if own.get(node, NO_SEAT).slot]] = False
        free &= ~unreadable
    return free


def _fits_into(pod: Pod, snapshot: Snapshot, conceded: Int64s) -> Bools:
    """Return, for each row, whether a pod fits beside what is held and not conceded to it."""
    fits: Bools = (snapshot.exists | ~snapshot.guarded) & ~snapshot.whole
    for column, amount in zip(*request_columns(pod, snapshot), strict=True):
        offered, requested = snapshot.allocatable[:, column], snapshot.requested[:, column]
        held, yielded = snapshot.held[:, column], conceded[column]
        is_free = (held <= yielded) & (snapshot.returning[:, column] == 0)
        is_exact = held < CELL_MAX
        fits &= is_exact & (is_free | (offered - requested - held + yielded >= amount))
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
    """Return, for each row, whether all that the pod requests is unused there, holds aside."""
    columns, amounts = request_columns(pod, snapshot)
    if any(amount and name not in snapshot.columns for name, amount in pod.requests.items()):
        return np.zeros(len(rows), dtype=np.bool_)  # No node offers it.
    at = np.ix_(rows, columns)
    room: Bools = np.all(snapshot.allocatable[at] - snapshot.requested[at] >= amounts, axis=1)
    return room
