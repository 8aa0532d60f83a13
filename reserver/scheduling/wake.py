"""Decides the waiting pods to send back to kube-scheduler when less is held.

kube-scheduler does not watch the store: left alone, it may take five minutes to retry a pod that
was refused because of a hold. But each retry costs a scheduling cycle, so only as many pods are
woken as fit into the freed room, highest priority first.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import replace
from itertools import islice

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s, clamped
from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Policy
from reserver.reservations.reservation import Ref
from reserver.scheduling.fit import allowed
from reserver.scheduling.pending_pods import Waiting
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Retry

_MOST_MATES = 100
"""Most other pods of a group that are looked at for a waiting pod of the group."""


class Wake:
    """The freed room, which is handed out to waiting pods in the order of `order`.

    Other work may come between two pods. Room that is freed meanwhile is for the next pass.
    """

    def __init__(
        self,
        freed: Collection[str],
        state: State,
        now: float,
        *,
        changed: Collection[str] = (),
        lately: Collection[str] = (),
        seats_are_over: bool = False,
    ) -> None:
        """Begin with the present free room.

        Args:
            freed: the nodes on which less is held than before.
            now: unix seconds.
            changed: nodes whose change kube-scheduler may have seen before Reserver.
            lately: the UIDs of pods with a refusal so recent that it may be out of date.
            seats_are_over: whether seats may have ended since the last pass.
        """
        state.ledger.advance(now, most=None)
        self._state = state
        self._nodes = [*{**dict.fromkeys(freed), **dict.fromkeys(changed)}]
        self._roused = False
        self._look()
        # Other changes do not count: a pod that is sent to its seat changes the seat's node.
        self._freed = dict.fromkeys(filter(state.snapshot.has_node, freed))
        self._is_freed = bool(self._freed)
        self._lately = frozenset(lately)
        self._seats_are_over = seats_are_over
        self._keeps: dict[tuple[Ref, str], bool] = {}

    def _concerns(self, uid: str, waiting: Waiting) -> bool:
        """Return whether the changes may concern a waiting pod."""
        if self._is_freed or uid in self._lately:
            return True
        return self._seats_are_over and self._is_kept_no_more(waiting)

    def _is_kept_no_more(self, waiting: Waiting) -> bool:
        """Return whether the reservation for whose seats a pod waits has ended or changed.

        The result is cached by reservation: an edit causes no work for pods that wait for others.
        """
        kept_by = waiting.kept_by
        if kept_by is None:
            return False
        key = (kept_by.ref, kept_by.digest)
        if key not in self._keeps:
            self._keeps[key] = self._state.ledger.keeps(kept_by)
        return not self._keeps[key]

    def _look(self) -> None:
        """Read the present free room."""
        snapshot = self._state.snapshot
        self._nodes = list(filter(snapshot.has_node, self._nodes))
        self._rows = rows = snapshot.rows(self._nodes)
        self._layout = snapshot.layout
        self._may_go = _Allowed(snapshot, rows)
        self._free = _free(snapshot, rows)
        self._too_large: set[object] = set()
        self._may_leave: dict[tuple[str, str], bool] = {}  # By group; the room only shrinks.

    def order(self) -> Generator[None, None, list[str]]:
        """Return the UIDs of the waiting pods: highest priority first, then longest waiting."""
        by_priority: dict[int, list[str]] = {}
        for uid, waiting in tuple(self._state.waiting.items()):
            if self._concerns(uid, waiting):
                by_priority.setdefault(waiting.pod.priority, []).append(uid)
            yield
        return [
            uid for priority in sorted(by_priority, reverse=True) for uid in by_priority[priority]
        ]

    def judge(self, uid: str) -> Effect | None:
        """Return the effect that sends a pod back if it fits now; None if not, or not waiting."""
        waiting = self._state.waiting.get(uid)
        if waiting is None:
            return None
        if self._layout != self._state.snapshot.layout:
            self._look()  # Columns may have changed.
        if seat := _seat_among(waiting.pod, self._freed, self._state):
            return _send_back(waiting.pod, seat)
        if self._is_kept_no_more(waiting):
            keeper = self._state.ledger.keeper(waiting.pod)
            if keeper is None or keeper.policy is not Policy.REQUIRE or keeper.node:
                # It may land anywhere with room, or has a seat that was free already.
                return Retry(waiting.pod, attempts=1)
            waiting = replace(waiting, kept_by=keeper)
            self._state.waiting[uid] = waiting
        is_kept = waiting.kept_by is not None and waiting.kept_by.policy is Policy.REQUIRE
        index = None if is_kept else self._take(waiting)  # Room that it may not use is for others.
        if index is not None:
            return _send_back(waiting.pod, self._nodes[index])
        if not is_kept and waiting.pod.group and self._makes_room(waiting):
            return Retry(waiting.pod, attempts=1)
        return self._rouse(waiting)

    def _rouse(self, waiting: Waiting) -> Activate | None:
        """Return the effect that lets a pod preempt; None if one pod was roused, or in vain."""
        snapshot = self._state.snapshot
        if self._roused or not (node := _preempted(waiting, self._nodes, self._free, snapshot)):
            return None
        self._roused = True  # One wakes all others of its priority or less.
        return Activate(waiting.pod, node)

    def _take(self, waiting: Waiting) -> int | None:
        """Take a pod's requests from the first node with room; return the node's index, or None."""
        pod = waiting.pod
        conceded = self._state.ledger.conceded(pod)
        kind = None if conceded is None else (pod.priority, pod.constraints.tolerates_recall)
        asked = (frozenset(pod.requests.items()), kind)
        if asked in self._too_large:
            return None  # The free room only shrinks during a pass.
        columns, amounts = request_columns(pod, self._may_go.snapshot)
        if columns.max(initial=-1) >= self._free.shape[1]:
            return None  # No node offered the resource when the pass began.
        free = self._free[:, columns]
        if conceded is not None:  # It may take or borrow held room.
            free = free + conceded[np.ix_(columns, self._rows)].T
        has_room = np.all(free >= amounts, axis=1)
        if not has_room.any():
            self._too_large.add(asked)
            return None
        for index in np.flatnonzero(has_room & self._may_go.at(pod)):
            is_open = self._is_there(index) and waiting.may_take(self._nodes[index])
            if is_open and self._is_for(pod, self._nodes[index]):
                self._free[index, columns] -= amounts
                return int(index)
        return None

    def _makes_room(self, waiting: Waiting) -> bool:
        """Return whether another pod of a pod's group may take freed room instead of its room.

        kube-scheduler tries all pods of a group again together. The pod lacks no room but that of
        the others, which were answered before it.
        """
        pod, state = waiting.pod, self._state
        key = (pod.name.namespace, pod.group)
        if key not in self._may_leave:
            mates = islice(state.gangs.waiting(pod).items(), _MOST_MATES)
            answered = (mate for uid, mate in mates if uid not in state.waiting)
            self._may_leave[key] = any(map(self._has_room, answered))
        if not self._may_leave[key]:
            return False
        columns, amounts = request_columns(pod, state.snapshot)
        free = _free(state.snapshot, self._named(waiting))[:, columns]
        return bool(np.all(free >= amounts, axis=1).any())

    def _named(self, waiting: Waiting) -> Rows:
        """Return the rows of the nodes that kube-scheduler may accept for a pod."""
        snapshot, names = self._state.snapshot, waiting.names
        if names is None:
            return np.flatnonzero(snapshot.exists)
        return snapshot.rows([name for name in names if snapshot.has_node(name)])

    def _has_room(self, pod: Pod) -> bool:
        columns, amounts = request_columns(pod, self._state.snapshot)
        is_offered = columns.max(initial=-1) < self._free.shape[1]
        return is_offered and bool(np.all(self._free[:, columns] >= amounts, axis=1).any())

    def _is_for(self, pod: Pod, node: str) -> bool:
        """Return whether a node is not held whole for others."""
        snapshot = self._state.snapshot
        is_free = node not in snapshot.whole_nodes or snapshot.residents.belongs(pod)
        return is_free or bool(self._state.ledger.seats(pod, (node,)))

    def _is_there(self, index: np.intp) -> bool:
        """Return whether a node still exists in its row, which another node may have by now."""
        node, snapshot = self._nodes[index], self._state.snapshot
        return snapshot.has_node(node) and snapshot.row(node) == self._rows[index]


def _free(snapshot: Snapshot, rows: Rows) -> Int64s:
    """Return the free amounts of rows next to the holds; what is held whole counts as free."""
    held = np.where(snapshot.whole[rows, np.newaxis], 0, snapshot.held[rows])
    return snapshot.allocatable[rows] - snapshot.requested[rows] - held


def _seat_among(pod: Pod, nodes: Collection[str], state: State) -> str | None:
    """Return the first of some nodes on which a pod has a seat."""
    seats = (seat.node for seat in state.ledger.seats(pod, nodes) if not seat.is_whole)
    return next(filter(state.snapshot.has_node, seats), None)


class _Allowed:
    """The nodes that constraints allow, cached for pods of one template."""

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self.snapshot = snapshot
        self._rows = rows
        self._known: dict[object, Bools] = {}

    def at(self, pod: Pod) -> Bools:
        """Return, for each of the rows, whether constraints allow the pod there."""
        labels = frozenset(pod.labels.items())
        key = (pod.name.namespace, labels, pod.constraints, pod.volume_claims)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = allowed(pod, self.snapshot)[self._rows]
        return known


def _preempted(waiting: Waiting, nodes: list[str], free: Int64s, snapshot: Snapshot) -> str | None:
    """Return the first node on which a pod fits if its spared victims are evicted; or None."""
    if not (waiting.spared or waiting.spared_more):
        return None
    columns, amounts = request_columns(waiting.pod, snapshot)
    width = free.shape[1]
    if columns.max(initial=-1) >= width:
        return None  # No node offered the resource when the pass began.
    for index, node in enumerate(nodes):
        if not snapshot.has_node(node):
            continue  # The node is gone.
        if waiting.spared_more and node not in waiting.spared:
            row = snapshot.row(node)  # Perhaps all pods there may be evicted.
            if row is not None and np.all(
                (snapshot.allocatable[row] - snapshot.held[row])[columns] >= amounts
            ):
                return node
            continue
        victims = [snapshot.counted(uid) for uid in waiting.spared.get(node, ())]
        left = [victim.pod for victim in victims if victim and victim.node == node]
        if left and np.all(
            (free[index] + _freed_by(left, node, snapshot)[:width])[columns] >= amounts
        ):
            return node
    return None


def _freed_by(pods: Iterable[Pod], node: str, snapshot: Snapshot) -> Int64s:
    """Return the amounts by which the row of a node grows once pods there are gone."""
    freed = np.zeros(snapshot.requested.shape[1], dtype=np.int64)
    for resource, amount in total(pod.requests for pod in pods).items():
        column = snapshot.columns.get(resource)
        if column is not None:
            requested = snapshot.amounts(node, resource).requested
            freed[column] = clamped(requested) - clamped(requested - amount)
    return freed


def _send_back(pod: Pod, node: str) -> Effect:
    """Steer a pod to a node, unless preemption has nominated a node for it."""
    return Retry(pod, attempts=1) if pod.nominated_node else Nominate(pod, node)
