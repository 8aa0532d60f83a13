"""Chooses the reservations and pods for which autoscalers should make room.

Autoscalers do not see holds, so in their simulation a waiting slot fits into held room. The
CapacityBuffer of a reservation excludes the nodes on which only holds keep its slots out. Then all
room that the autoscaler sees is free, and nothing counts twice (docs/adr/0054).

For pods that only holds keep out, an autoscaler also sees held room into which they fit. As many
pods as that room takes need a CapacityBuffer. The others cause new nodes by themselves: with
buffers they would cause two each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.headroom import Int64s
from reserver.cluster.node import HOSTNAME
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.fit import allowed
from reserver.scheduling.pending_pods import Waiting
from reserver.scheduling.placement import AllowedNodes, allowed_slots, slot_pod
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State

MOST_NODES = 500
"""Most nodes that a buffer excludes: its template names them."""

MOST_BUFFERS = 100
"""Most buffers of one namespace: for reservations first, then for the pods that have waited
longest."""


class Need(Enum):
    """The room that a reservation needs of autoscalers."""

    NOTHING = 0
    ROOM = 1
    PATIENCE = 2
    """The reservation has a place, on a node that an autoscaler may still remove."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Room that an autoscaler should make.

    Attributes:
        reservation: the reservation of the waiting slots; None for a waiting pod.
        pod: the pod that stands for one slot, or name, UID and requests of the waiting pod.
        replicas: the number of waiting slots, or 1.
        shunned: the excluded nodes, as values of the label kubernetes.io/hostname.
    """

    reservation: Reservation | None
    pod: Pod
    replicas: int
    shunned: tuple[str, ...]


@dataclass(slots=True)
class KeptOutNodes:
    """The nodes on which only holds keep slots out, cached by requests.

    Valid as long as no node, no pod and no hold changes.
    """

    known: dict[frozenset[tuple[str, int]], tuple[str, ...]] = field(default_factory=dict)

    def shunned(self, pod: Pod, state: State) -> tuple[str, ...]:
        """Return the host names of the nodes on which only holds keep some slots out."""
        key = frozenset(pod.requests.items())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _shunned(pod, state)
        return found


def need(ref: Ref, state: State) -> Need:
    """Return the room that a reservation needs of autoscalers now.

    The seat of a PodMove needs nothing: it waits for other pods to leave.
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
    """Return the buffer of a reservation; None if no slot waits."""
    reservation, (_, slots) = state.ledger.get(ref), state.ledger.wants_place(ref)
    if reservation is None or not slots:
        return None
    pod = slot_pod(reservation)
    return Buffer(reservation, pod, slots, kept_out.shunned(pod, state))


def deceptive(pod: Pod, snapshot: Snapshot) -> Rows:
    """Return the rows of nodes with room for such pods, and for fewer of them next to the holds."""
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


_BY = ("cpu", "memory")


class Simulation:
    """An autoscaler's view of the waiting pods in one pass, simulated for each namespace alone.

    Changes meanwhile count in the next pass. Pods of other namespaces take no simulated room: a pod
    that in fact causes no node would keep others' pods from buffers for as long as it waits.
    """

    def __init__(self, state: State, numbers: Counter[str]) -> None:
        """Begin without pods; `numbers` are the buffers of each namespace's reservations."""
        self._state, self._numbers = state, numbers
        self._chosen: list[Waiting] = []
        self._simulated, self._namespace = state.snapshot, ""
        self._kept_out, self._may_go = KeptOutNodes(), AllowedNodes()

    def consider(self, uid: str) -> None:
        """Add a pod that a buffer may help; call first for the pods that have waited longest."""
        waiting = self._state.waiting.get(uid)
        if waiting is None:
            return
        namespace = waiting.pod.name.namespace
        if self._numbers[namespace] < MOST_BUFFERS and _is_outsider(waiting.pod, self._state):
            self._numbers[namespace] += 1
            self._chosen.append(waiting)

    def in_order(self) -> list[Waiting]:
        """Return the pods by namespace, then in Karpenter's order (byCPUAndMemoryDescending)."""
        self._chosen.sort(key=_place_in_order)
        return self._chosen

    def buffer(self, waiting: Waiting) -> Buffer | None:
        """Return the buffer of a pod that the autoscaler expects on a held node; None if not so.

        The room is then taken for the next pods of the namespace.
        """
        pod = waiting.pod
        if pod.name.namespace != self._namespace:
            self._simulated, self._may_go = self._state.snapshot.fork(), AllowedNodes()
            self._namespace = pod.name.namespace
        node = self._believed(waiting)
        if node is None:
            return None
        self._simulated.take(node, pod.requests)
        bare = Pod(name=pod.name, uid=pod.uid, requests=pod.requests)
        return Buffer(None, bare, 1, self._kept_out.shunned(pod, self._state))

    def _believed(self, waiting: Waiting) -> str | None:
        """Return the held node on which an autoscaler expects a pod; None without one."""
        simulated = self._simulated
        rows = deceptive(waiting.pod, simulated)
        if waiting.names is not None:
            rows = rows[np.isin(rows, simulated.rows(list(waiting.names)))]
        if len(rows):
            rows = rows[allowed_slots(waiting.pod, simulated, self._may_go)[rows]]
        return simulated.name_of(int(rows[0])) if len(rows) else None


class BufferedPods:
    """Bound pods that had a buffer, for as long as an autoscaler expects that they fit elsewhere.

    Karpenter moves pods to nodes that look free, and removes their nodes. Holds would keep the pods
    out there, so they would need a buffer again, and so on. So the node of a guest stays (ADR 50).
    """

    def __init__(self) -> None:
        """Begin without pods."""
        self._nodes: dict[str, tuple[Pod, str]] = {}
        self._numbers = Counter[str]()

    def __contains__(self, node: str) -> bool:
        """Return whether a node has guests."""
        return node in self._numbers

    def __len__(self) -> int:
        """Return the number of guests."""
        return len(self._nodes)

    def uids(self) -> tuple[str, ...]:
        """Return the UIDs of the guests."""
        return tuple(self._nodes)

    def add(self, pod: Pod, node: str) -> None:
        """Add a pod that goes to a node."""
        self._drop(pod.uid)
        self._nodes[pod.uid] = pod, node
        self._numbers[node] += 1

    def let_go(self, uid: str, state: State) -> str:
        """Drop a guest that is gone or fits nowhere else; return its node if it was the last."""
        pod, node = self._nodes[uid]
        counted = state.snapshot.counted(uid)
        if counted is not None and counted.node == node and self._seems_to_fit(pod, state):
            return ""
        self._drop(uid)
        return node if node not in self else ""

    def _drop(self, uid: str) -> None:
        if found := self._nodes.pop(uid, None):
            _, node = found
            self._numbers[node] -= 1
            if not self._numbers[node]:
                del self._numbers[node]

    def _seems_to_fit(self, pod: Pod, state: State) -> bool:
        rows = deceptive(pod, state.snapshot)
        return bool(len(rows) and allowed(pod, state.snapshot)[rows].any())


def lands(pod: Pod, state: State) -> bool:
    """Return whether Filter has passed a pod since, and kube-scheduler has not bound it yet.

    Until then its buffer stays: its new node looks empty while volumes are being created. If
    kube-scheduler itself refuses the pod, its condition no longer mentions reservations.
    """
    known = state.pods.get(pod.name)
    if known is None or known.uid != pod.uid or known.node or state.assumption(pod.uid):
        return False
    return known.is_refused and pod.uid not in state.waiting


def came_before(pod: Pod, state: State) -> bool:
    """Return whether a former leader's buffer brought a pod: its node is kept, and not held."""
    node, row = state.node(pod.node), state.snapshot.row(pod.node)
    if node is None or row is None or not node.is_kept or state.snapshot.has_holds[row]:
        return False
    return not pod.finished and pod.controller.kind != "DaemonSet"


def _place_in_order(waiting: Waiting) -> tuple[object, ...]:
    pod = waiting.pod
    return (pod.name.namespace, *(-pod.requests.get(name, 0) for name in _BY))


def _is_outsider(pod: Pod, state: State) -> bool:
    """Return whether a new node helps a waiting pod.

    It does not if the pod's own reservation waits, if room is being made already, if only one node
    is allowed, or if only kube-scheduler can judge its needs (devices).
    """
    if pod.nominated_node or pod.terminating or pod.has_resource_claims:
        return False
    ledger = state.ledger
    if pod.controller.kind == "DaemonSet" or ledger.awaited_by(pod) or ledger.seats(pod):
        return False
    return not any(ledger.wants_place(own.ref)[1] for own in ledger.claimable_by(pod))
