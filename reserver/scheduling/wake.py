"""Which waiting pods to send back to kube-scheduler when less is held than before.

kube-scheduler does not watch the store: left alone, it may take five minutes to try a pod again
that was refused because of a hold. But each try costs it a scheduling cycle, so only as many pods
are woken as fit into what became free, the most important first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Int64s, Rows, Snapshot, clamped
from reserver.scheduling.effects import Effect, Retry, Rouse, Steer
from reserver.scheduling.filter import LEAST_SAMPLE
from reserver.scheduling.fit import allowed, total, wanted
from reserver.scheduling.state import State, Waiting


def wake(freed: Collection[str], state: State, now: float) -> tuple[Effect, ...]:
    """Return what sends back those waiting pods that fit now on nodes where less is held.

    Args:
        freed: the nodes on which less is held than before.
        state: the cluster.
        now: unix seconds.
    """
    state.ledger.advance(now)
    nodes = [name for name in freed if state.snapshot.has_node(name)]
    if not nodes or not state.waiting:
        return ()
    return tuple(_fitting(nodes, state))


def _fitting(nodes: list[str], state: State) -> Iterator[Effect]:
    snapshot = state.snapshot
    rows = snapshot.rows(nodes)
    may_go = _Allowed(snapshot, rows)
    free = snapshot.allocatable[rows] - snapshot.requested[rows] - snapshot.held[rows]
    roused = False
    # Sorting keeps the order of arrival among equals.
    for waiting in sorted(state.waiting.values(), key=lambda w: -w.pod.priority):
        if seat := _seat_among(waiting.pod, nodes, state):
            yield _send_back(waiting.pod, seat)
            continue
        index = _take(waiting, nodes, free, may_go)
        if index is not None:
            yield _send_back(waiting.pod, nodes[index])
        elif not roused and (node := _preempted(waiting, nodes, free, snapshot)):
            roused = True  # One brings all the others of its priority or less.
            yield Rouse(waiting.pod, node)


def _seat_among(pod: Pod, nodes: Collection[str], state: State) -> str | None:
    """Return the first of some nodes that has a seat for a pod, which nobody else can take."""
    return next((seat.node for seat in state.ledger.seats(pod) if seat.node in nodes), None)


class _Allowed:
    """Where constraints let pods go, judged once for all pods of a template."""

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self.snapshot = snapshot
        self._rows = rows
        self._known: dict[object, Bools] = {}

    def at(self, pod: Pod) -> Bools:
        """Return, for each of the rows, whether the pod may go there if there is room."""
        labels = frozenset(pod.labels.items())
        key = (pod.name.namespace, labels, pod.constraints, pod.volume_claims)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = allowed(pod, self.snapshot)[self._rows]
        return known


def _take(waiting: Waiting, nodes: list[str], free: Int64s, may_go: _Allowed) -> int | None:
    """Take a pod's request out of the first node that has it; return which one."""
    pod = waiting.pod
    columns, amounts = wanted(pod, may_go.snapshot)
    has_room = np.all(free[:, columns] >= amounts, axis=1)
    if not has_room.any():
        return None
    # A whole sample was refused: a node outside it may do as well. Otherwise kube-scheduler has
    # refused by itself all that it did not name.
    may_be_any = len(waiting.names) >= LEAST_SAMPLE
    for index in np.flatnonzero(has_room & may_go.at(pod)):
        if may_be_any or nodes[index] in waiting.names:
            free[index, columns] -= amounts
            return int(index)
    return None


def _preempted(waiting: Waiting, nodes: list[str], free: Int64s, snapshot: Snapshot) -> str | None:
    """Return the first node where a pod fits once those are evicted that were spared before."""
    columns, amounts = wanted(waiting.pod, snapshot)
    for index, node in enumerate(nodes):
        victims = [snapshot.placement(uid) for uid in waiting.spared.get(node, ())]
        left = [victim.pod for victim in victims if victim and victim.node == node]
        if left and np.all((free[index] + _freed_by(left, node, snapshot))[columns] >= amounts):
            return node
    return None


def _freed_by(pods: Iterable[Pod], node: str, snapshot: Snapshot) -> Int64s:
    """Return by how much the row of a node grows once pods are gone from there."""
    freed = np.zeros(snapshot.requested.shape[1], dtype=np.int64)
    for resource, amount in total(pod.requests for pod in pods).items():
        column = snapshot.columns.get(resource)
        if column is not None:
            requested = snapshot.account(node, resource).requested
            freed[column] = clamped(requested) - clamped(requested - amount)
    return freed


def _send_back(pod: Pod, node: str) -> Effect:
    """Steer a pod to a node; a nomination that somebody else made (preemption) is left alone."""
    return Retry(pod, attempts=1) if pod.nominated_node else Steer(pod, node)
