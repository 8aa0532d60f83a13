"""The snapshot of the cluster: the capacity of its nodes, and the pods counted on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, KeysView, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import (
    ALLOCATABLE,
    HELD,
    REQUESTED,
    RETURNING,
    Rows,
    Totals,
)
from reserver.cluster.labels import Labels
from reserver.cluster.lending import Lending, Loan
from reserver.cluster.node import NODES, Node
from reserver.cluster.pod import Pod
from reserver.cluster.pod_table import PodTable
from reserver.cluster.storage import Storage
from reserver.cluster.whole_nodes import WholeNodes

EXEMPT_NAMESPACES = frozenset({"kube-system"})
"""Namespaces of system pods; the settings add others."""


class CountedPod(NamedTuple):
    """A pod on a node.

    Attributes:
        slot: slot of the pod in `Snapshot.residents`.
    """

    node: str
    pod: Pod
    slot: int

    def counts_like(self, pod: Pod, node: str) -> bool:
        """Return whether replacing this pod by that pod on that node changes no count."""
        own = self.pod
        return (
            self.node == node
            and own.requests == pod.requests
            and own.labels == pod.labels
            and own.constraints == pod.constraints
            and own.terminating == pod.terminating
            and own.lingers == pod.lingers
            and own.controller == pod.controller
            and own.controller_version == pod.controller_version
            and own.volume_claims == pod.volume_claims
        )


class Snapshot(WholeNodes):
    """The capacity of all nodes, updated row by row.

    Attributes:
        residents: the pods on the nodes.
        namespaces: labels of the namespaces.
        move_windows: schedules for moves, by namespace, of the namespaces that have one.
        exempt_namespaces: namespaces of system pods, to which holds do not apply.
        storage: claims, volumes and storage classes.
        lending: the loans of holds, and the borrowers.
    """

    def __init__(self) -> None:
        """Begin with an empty cluster."""
        super().__init__()
        self._counted: dict[str, CountedPod] = {}
        self.residents = PodTable()
        self.namespaces: dict[str, Labels] = {}
        self.move_windows: dict[str, str] = {}
        self.exempt_namespaces = EXEMPT_NAMESPACES
        self.storage = Storage()
        self.lending = Lending()
        self._postponed: dict[str, Totals | None] | None = None

    @property
    def node_count(self) -> int:
        """Number of cached Node objects."""
        return int(self.exists.sum())

    def has_node(self, name: str) -> bool:
        """Return whether the Node object is cached."""
        row = self._row_of.get(name)
        return row is not None and bool(self.exists[row])

    def existing_rows(self) -> Rows:
        """Return the rows of all cached Node objects."""
        return np.flatnonzero(self.exists)

    def labels_of(self, node: str) -> Labels:
        """Return the labels of a node; empty for a node that is not cached."""
        row = self.row(node)
        return {} if row is None else self.topology.labels.of(row)

    def node_names(self) -> list[str]:
        """Return the names of all cached Node objects."""
        return [self._names[row] for row in self.existing_rows()]

    def set_node(self, node: Node) -> None:
        """Add or replace a Node object."""
        self._offer(self._totals[ALLOCATABLE].get(node.name, {}), node.allocatable)
        row = self._ensure_row(node.name)  # May replace the arrays.
        self.exists[row] = True
        self.topology.put(row, node)
        self._set(ALLOCATABLE, node.name, node.allocatable)
        if node.name in self.whole_nodes:
            self._recount_whole(node.name)

    def remove_node(self, name: str) -> None:
        """Remove a Node object; its pods and holds still count."""
        row = self._row_of.get(name)
        if row is not None:
            for each in (self, *self._forks):  # The row may be handed to another node.
                each.exists[row] = False
            self.topology.put(row, None)
            self._offer(self._totals[ALLOCATABLE].get(name, {}), {})
            self._set(ALLOCATABLE, name, {})
            if name in self.whole_nodes:
                self._recount_whole(name)

    def count(self, pod: Pod, node: str) -> None:
        """Count a pod on a node, and on no other node."""
        before = self._counted.get(pod.uid)
        if before is not None and before.counts_like(pod, node):
            self._counted[pod.uid] = before._replace(pod=pod)  # Frees the old object.
            return
        self.uncount(pod.uid)
        self._pods_on[node] = self._pods_on.get(node, 0) + 1
        self._add_requested(node, pod.requests, 1)
        slot = self.residents.add(pod, self._row_of[node])
        self._counted[pod.uid] = CountedPod(node, pod, slot)
        self._borrow(node, pod)

    def count_all(self, pods: Sequence[Pod]) -> None:
        """Count pods on their nodes at once; none of them may be counted yet."""
        totals = defaultdict[str, Counter[str]](Counter)
        for pod in pods:
            found = totals[pod.node]
            for name, amount in pod.requests.items():
                found[name] += amount
            self._pods_on[pod.node] = self._pods_on.get(pod.node, 0) + 1
        for node, amounts in totals.items():
            self._add_requested(node, amounts, 1)
        slots = self.residents.add_all(pods, self.rows([pod.node for pod in pods]))
        for pod, slot in zip(pods, slots, strict=True):
            self._counted[pod.uid] = CountedPod(pod.node, pod, slot)
            self._borrow(pod.node, pod)

    def uncount(self, pod_uid: str) -> None:
        """Stop counting a pod, if it is counted."""
        before = self._counted.pop(pod_uid, None)
        if before is None:
            return
        self.residents.remove(before.slot, before.pod)
        self._leave(before)

    def move(self, pod_uid: str, node: str) -> None:
        """Count a pod on another node, instead of the node where it is counted."""
        before = self._counted[pod_uid]
        self._pods_on[node] = self._pods_on.get(node, 0) + 1
        self._add_requested(node, before.pod.requests, 1)
        self.residents.rows[before.slot] = self._row_of[node]
        self._leave(before)
        self._counted[pod_uid] = before._replace(node=node)
        self._borrow(node, before.pod)

    def unseen(self, pod_uid: str) -> AbstractContextManager[None]:
        """Hide a pod from the residents until the block ends; its requests still count."""
        counted = self._counted.get(pod_uid)
        return self.residents.without(counted.slot) if counted else nullcontext()

    def counted(self, pod_uid: str) -> CountedPod | None:
        """Return a counted pod with its node; None if it is not counted."""
        return self._counted.get(pod_uid)

    def set_held(self, node: str, totals: Mapping[str, int], loans: Sequence[Loan] = ()) -> None:
        """Set the amounts that active reservations hold on a node, and their loans.

        Without holds `totals` is empty. `NODES` in `totals` holds all that the node's pods leave.
        """
        self.lending.set(node, totals, loans)
        if totals or node in self._row_of:
            row = self._ensure_row(node)  # May replace the arrays.
            self.has_holds[row] = bool(totals)
            if NODES in totals or node in self.whole_nodes:
                self._mark_whole(node, row, totals)
            self._guard(node, row, is_guarded=bool(totals) or node in self._totals[RETURNING])
            if self._postponed is not None and node in self.lending.nodes():
                self._postponed[node] = totals
            else:
                self._set_held(node, self.lending.held(node) or totals)

    def _set_held(self, node: str, held: Totals) -> None:
        self._set(HELD, node, self._with_rest(node, held) if node in self.whole_nodes else held)

    def set_returning(self, node: str, totals: Mapping[str, int], claimants: KeysView[str]) -> None:
        """Set the amounts that reservations hold again once pods end; one has these claimants."""
        if totals or node in self._row_of:
            row = self._ensure_row(node)  # May replace the arrays.
            self._guard(node, row, is_guarded=bool(totals) or bool(self.has_holds[row]))
            self._set(RETURNING, node, totals)
        self.recount_borrowed(node, claimants)

    def recount_borrowed(self, node: str, claimants: KeysView[str] | None = None) -> None:
        """Count anew what borrowers take on a node: slots of these pods, or of any, differ."""
        if node in self.lending.nodes():
            self.lending.slots_changed(node, claimants)
            with self.borrowed_once() as postponed:
                postponed.setdefault(node, None)

    @contextmanager
    def borrowed_once(self) -> Iterator[dict[str, Totals | None]]:
        """Count what borrowers take once for each node that changes within the block, at its end.

        A pod may claim a thousand reservations at once, and a reservation be on a thousand nodes.
        """
        if self._postponed is not None:
            yield self._postponed
            return
        self._postponed = {}
        try:
            yield self._postponed
        finally:
            postponed, self._postponed = self._postponed, None
            for node, totals in postponed.items():
                held = self.lending.held(node) or totals
                if held is not None:
                    self._set_held(node, held)

    def _guard(self, node: str, row: int, *, is_guarded: bool) -> None:
        self.guarded[row] = is_guarded
        (self.holding.add if is_guarded else self.holding.discard)(node)
        (self.without_holds.discard if is_guarded else self.without_holds.add)(node)

    def mark_unreadable(self, node: str, *, is_unreadable: bool) -> None:
        """Set whether an object of a node cannot be read; the node may have no row."""
        (self.unreadable_nodes.add if is_unreadable else self.unreadable_nodes.discard)(node)
        row = self._row_of.get(node)
        if row is not None:
            self.has_unreadable[row] = is_unreadable

    def fork(self) -> Snapshot:
        """Return a copy of the capacity, to try placements without an effect on this snapshot.

        The copy has its own amounts (`take`). It shares the nodes' labels, taints and pods with
        this snapshot, so its rows grow when nodes join, but it never shows the new nodes, and drops
        nodes that leave.
        """
        forked = copy(self)
        forked._detach()  # noqa: SLF001 - a snapshot too
        self._forks.add(forked)
        return forked

    def take(self, node: str, amounts: Totals) -> None:
        """Count amounts on a node as the request of a pod."""
        self.spoken_for.add(node)
        self._add_requested(node, self._free_on(node) if NODES in amounts else amounts, 1)

    def _borrow(self, node: str, pod: Pod) -> None:
        """Count a pod as a borrower, if it tolerates recalls."""
        if pod.constraints.tolerates_recall:
            self.lending.add(node, pod)
            self._recount_held(node)

    def _recount_held(self, node: str) -> None:
        """Recount the held and not borrowed amounts of a node."""
        if held := self.lending.held(node):
            self._set_held(node, held)

    def _leave(self, before: CountedPod) -> None:
        """Subtract the request of a pod from its node."""
        node = before.node
        if before.pod.constraints.tolerates_recall:
            self.lending.remove(node, before.pod.uid)
            self._recount_held(node)
        self._pods_on[node] -= 1
        if self._pods_on[node]:
            self._add_requested(node, before.pod.requests, -1)
        else:
            del self._pods_on[node]
            self._set(REQUESTED, node, {})
            if node in self.whole_nodes:
                self._recount_whole(node)

    def _add_requested(self, node: str, requests: Mapping[str, int], sign: int) -> None:
        totals = dict(self._totals[REQUESTED].get(node, {}))
        for name, amount in requests.items():
            if left := totals.pop(name, 0) + sign * amount:
                totals[name] = left
        self._write(REQUESTED, node, totals, requests)
        if node in self.whole_nodes:
            self._recount_whole(node)
