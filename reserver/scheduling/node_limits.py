"""Limits of nodes on the slots of a reservation: the tenantCeiling, and CSI volumes.

The tenantCeiling limits the slots of tenants on each node (docs/adr/0072); CSINodes limit the
volumes of a seat's pod. As in kube-scheduler's plugins/nodevolumelimits/csi.go, each volume
of a driver counts once on a node, however many pods use it. The volumes of other seats there count
as well. Volumes that are still attached for deleted pods (VolumeAttachment) do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import Storage, Volume
from reserver.reservations import owner
from reserver.reservations.reservation import Reservation
from reserver.scheduling.request_arrays import amount_table, request_columns
from reserver.scheduling.state import State

REACHED = "node(s) at the tenantCeiling"


_UNLIMITED = np.iinfo(np.int64).max


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


def too_many(reservation: Reservation, state: State, nodes: Collection[str] = ()) -> Bools:
    """Return, for each row, whether its node cannot attach the volumes of a seat's pod.

    Args:
        reservation: the seat.
        nodes: the nodes to look at; empty for all.
    """
    snapshot, storage = state.snapshot, state.snapshot.storage
    full: Bools = np.zeros(len(snapshot.exists), dtype=np.bool_)
    brought = set(_attached(_claims(reservation), storage)) if storage.attachable else set()
    drivers = {volume.driver for volume in brought}
    limited = {
        row: (node, limits)
        for node in nodes or storage.attachable
        if (limits := storage.attachable.get(node, {})).keys() & drivers
        and (row := snapshot.row(node)) is not None
    }
    there = defaultdict[int, set[Volume]](set)
    for row, claims in snapshot.residents.claims_by_row() if limited else ():
        if row in limited:
            there[row].update(_attached(claims, storage))
    for row, (node, limits) in limited.items():
        for seat in state.ledger.holding_on(node):
            if seat.volume_claims and seat.ref != reservation.ref:
                there[row].update(_attached(_claims(seat), storage))
        for driver in drivers & limits.keys():
            known = {volume for volume in there[row] if volume.driver == driver}
            new = {volume for volume in brought if volume.driver == driver} - known
            full[row] |= bool(new) and len(known) + len(new) > limits[driver]
    return full


def _claims(seat: Reservation) -> Iterator[PodName]:
    home = owner.home(seat.owners, seat.rules)
    return (PodName(home, name) for name in seat.volume_claims)


def _attached(claims: Iterable[PodName], storage: Storage) -> Iterator[Volume]:
    """Yield the volumes of PersistentVolumeClaims that a CSI driver attaches."""
    for name in claims:
        claim = storage.claims.get(name)
        volume = storage.volumes.get(claim.volume) if claim and claim.is_bound else None
        if volume is not None and volume.driver:
            yield volume
