"""Slots below the ceiling: how many a tenant may be given on each node (docs/adr/0072)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Reservation
from reserver.scheduling.request_arrays import amount_table, request_columns
from reserver.scheduling.state import State

REACHED = "node(s) at the tenantCeiling"


_UNLIMITED = np.iinfo(np.int64).max


def most_slots(reservation: Reservation, pod: Pod, state: State) -> Int64s:
    """Return how many slots each row may take, for what tenants hold there already.

    Args:
        reservation: names no node.
        pod: what a slot of it is judged as.
    """
    snapshot, quotas = state.snapshot, state.ledger.quotas
    percent = quotas.ceiling.limits.percent_of_node
    if percent is None or not quotas.is_below_ceiling(reservation.ref.namespace):
        return np.full(len(snapshot.exists), _UNLIMITED)
    if reservation.is_whole:
        return np.full(len(snapshot.exists), _UNLIMITED if percent >= 100 else 0)  # noqa: PLR2004
    columns, amounts = request_columns(pod, snapshot)
    offered = snapshot.allocatable[:, columns]
    limits = offered // 100 * percent + offered % 100 * percent // 100  # Without overflow.
    every = np.arange(len(offered), dtype=np.intp)
    free = limits - amount_table(quotas.ceiling.on_nodes, snapshot, every, columns)
    most: Int64s = np.maximum((free // amounts).min(axis=1, initial=_UNLIMITED), 0)
    return most


def taken(numbers: Mapping[str, int], snapshot: Snapshot) -> Int64s:
    """Return how many slots each row has been given, of so many on each node."""
    slots = np.zeros(len(snapshot.exists), dtype=np.int64)
    slots[snapshot.rows(list(numbers))] = list(numbers.values())
    return slots
