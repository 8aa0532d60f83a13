"""Chooses reservations that autoscalers should make room for, and nodes that only look free.

Autoscalers do not see holds, so in their simulation a slot that waits fits beside what is held. The
CapacityBuffer of a reservation keeps its pods from the nodes where only holds keep its slots out:
then all room that the autoscaler sees is free, and nothing counts twice (docs/adr/0054).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.headroom import Int64s
from reserver.cluster.node import HOSTNAME
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import slot_pod
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State

MOST_NODES = 500
"""How many nodes a buffer's pods are kept from at most: they are named in its template."""

MOST_BUFFERS = 100
"""How many reservations and pods of one namespace have buffers at most: reservations first, and
those that have waited longest."""


class Need(Enum):
    """The room that a reservation needs of autoscalers."""

    NOTHING = 0
    ROOM = 1
    PATIENCE = 2
    """It has its place, on a node that an autoscaler may still remove."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Room that an autoscaler is to make.

    Attributes:
        reservation: whose slots wait; None for a pod that waits itself.
        pod: what one of them is judged as, or name, UID and requests of the pod.
        replicas: how many of them wait.
        shunned: values of the label kubernetes.io/hostname of nodes that look free and are held.
    """

    reservation: Reservation | None
    pod: Pod
    replicas: int
    shunned: tuple[str, ...]


@dataclass(slots=True)
class KeptOutNodes:
    """The nodes where only holds keep slots out, judged once for equal demands.

    Good for as long as no node, no pod and no hold changes.
    """

    known: dict[frozenset[tuple[str, int]], tuple[str, ...]] = field(default_factory=dict)

    def shunned(self, pod: Pod, state: State) -> tuple[str, ...]:
        """Return the host names of the nodes where only holds keep some slots out."""
        key = frozenset(pod.requests.items())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _shunned(pod, state)
        return found


def need(ref: Ref, state: State) -> Need:
    """Return what a reservation needs of autoscalers now.

    The seat of a PodMove needs nothing: it waits for others to leave.
    """
    reservation = state.ledger.get(ref)
    if reservation is None or reservation.is_seat:
        return Need.NOTHING
    if state.ledger.wants_place(ref)[1]:
        return Need.NOTHING if reservation.is_whole else Need.ROOM  # No pod asks for a whole node.
    nodes = map(state.node, state.ledger.holding(ref))
    is_kept = all(node is None or node.is_kept for node in nodes)
    return Need.NOTHING if is_kept else Need.PATIENCE


def buffer(ref: Ref, state: State, kept_out: KeptOutNodes) -> Buffer | None:
    """Return what an autoscaler is to make room for; None if no slot waits."""
    reservation, (_, slots) = state.ledger.get(ref), state.ledger.wants_place(ref)
    if reservation is None or not slots:
        return None
    pod = slot_pod(reservation)
    return Buffer(reservation, pod, slots, kept_out.shunned(pod, state))


def deceptive(pod: Pod, snapshot: Snapshot) -> Rows:
    """Return the rows of the nodes where such pods fit, and fewer of them beside the holds."""
    columns, amounts = request_columns(pod, snapshot)
    rows: Rows = np.flatnonzero(snapshot.has_holds & snapshot.exists)
    is_offered = len(columns) == sum(amount > 0 for amount in pod.requests.values())
    if not is_offered or not len(columns) or not len(rows):
        return rows[:0]
    at = np.ix_(rows, columns)
    free = snapshot.allocatable[at] - snapshot.requested[at]
    seen: Int64s = (free // amounts).min(axis=1)
    room = ((free - snapshot.held[at]) // amounts).min(axis=1)
    found: Rows = rows[(seen > 0) & (seen > room)]
    return found


def _shunned(pod: Pod, state: State) -> tuple[str, ...]:
    names = map(state.snapshot.name_of, map(int, deceptive(pod, state.snapshot)))
    nodes = ((name, state.node(name)) for name in names)
    hosts = (node.labels.get(HOSTNAME, name) if node else name for name, node in nodes)
    return tuple(sorted(hosts)[:MOST_NODES])
