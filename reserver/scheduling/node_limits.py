"""Limits of nodes on the slots of a reservation: the tenantCeiling, and CSI volumes.

The tenantCeiling limits the slots of tenants on each node (docs/adr/0072); CSINodes limit the
volumes of a seat's pod. As in kube-scheduler's plugins/nodevolumelimits/csi.go, each volume
of a driver counts once on a node, however many pods use it. The volumes of other seats there count
as well. Volumes that are still attached for deleted pods (VolumeAttachment) do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping

import numpy as np

from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import Storage
from reserver.reservations import owner
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.closures import NO_NODES, Nodes
from reserver.scheduling.request_arrays import amount_table, request_columns
from reserver.scheduling.state import State

REACHED = "node(s) at the tenantCeiling"

_AT_A_TIME = 100
"""Nodes whose volumes are counted in one step: a node may have a hundred."""

_UNLIMITED = np.iinfo(np.int64).max

_Attached = tuple[str, str]
"""A volume: its CSI driver, and the driver's identifier."""


def most_slots(reservation: Reservation, pod: Pod, state: State) -> Int64s:
    """Return the most slots of each row within the tenantCeiling.

    Args:
        reservation: a reservation without a named node.
        pod: the pod that stands for one slot.
    """
    snapshot, quotas = state.snapshot, state.ledger.quotas
    percent = quotas.ceiling.limits.percent_of_node
    if percent is None or not quotas.is_below_ceiling(reservation.ref.namespace):
        return np.full(len(snapshot.exists), _UNLIMITED)
    if reservation.is_whole:
        return np.full(len(snapshot.exists), _UNLIMITED if percent >= 100 else 0)  # noqa: PLR2004
    columns, amounts = request_columns(pod, snapshot)
    offered = snapshot.allocatable[:, columns]
    limits = offered // 100 * percent + -(-(offered % 100) * percent // 100)  # Without overflow.
    every = np.arange(len(offered), dtype=np.intp)
    free = limits - amount_table(quotas.ceiling.on_nodes, snapshot, every, columns)
    most: Int64s = np.maximum((free // amounts).min(axis=1, initial=_UNLIMITED), 0)
    return most


def taken(numbers: Mapping[str, int], snapshot: Snapshot) -> Int64s:
    """Return the number of slots on each row, given the numbers by node."""
    slots = np.zeros(len(snapshot.exists), dtype=np.int64)
    slots[snapshot.rows(list(numbers))] = list(numbers.values())
    return slots


def full_of_volumes(reservation: Reservation, state: State) -> Generator[None, None, Nodes]:
    """Return the nodes that cannot attach the volumes of a seat's pod, a few in each step."""
    full: Nodes = NO_NODES
    nodes = list(state.snapshot.storage.attachable) if reservation.volume_claims else []
    for first in range(0, len(nodes), _AT_A_TIME):
        full |= too_many(reservation, state, nodes[first : first + _AT_A_TIME])
        yield
    return full


def too_many(reservation: Reservation, state: State, nodes: Iterable[str]) -> Nodes:
    """Return those of some nodes that cannot attach the volumes of a seat's pod."""
    brought = set(_attached(_claims(reservation), state.snapshot.storage))
    return frozenset(node for node in nodes if _is_full(node, brought, reservation.ref, state))


def _is_full(node: str, brought: set[_Attached], seat: Ref, state: State) -> bool:
    """Return whether a node cannot attach the volumes that the pod of a seat brings."""
    snapshot, storage = state.snapshot, state.snapshot.storage
    row, limits = snapshot.row(node), storage.attachable.get(node, {})
    drivers = limits.keys() & {driver for driver, _ in brought}
    if row is None or not drivers:
        return False
    there = set(_attached(snapshot.residents.claims_on(row), storage))
    for other in state.ledger.holding_on(node):
        if other.volume_claims and other.ref != seat:
            there.update(_attached(_claims(other), storage))
    known, new = (Counter(driver for driver, _ in each) for each in (there, brought - there))
    return any(new[driver] and known[driver] + new[driver] > limits[driver] for driver in drivers)


def _claims(seat: Reservation) -> Iterator[PodName]:
    home = owner.home(seat.owners, seat.rules)
    return (PodName(home, name) for name in seat.volume_claims)


def _attached(claims: Iterable[PodName], storage: Storage) -> Iterator[_Attached]:
    """Yield the volumes of PersistentVolumeClaims that a CSI driver attaches."""
    for name in claims:
        claim = storage.claims.get(name)
        volume = storage.volumes.get(claim.volume) if claim and claim.is_bound else None
        if volume is not None and volume.driver:
            yield volume.driver, volume.handle
