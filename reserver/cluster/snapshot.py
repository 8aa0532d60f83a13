"""The snapshot of the cluster: what its nodes offer, and which pods are counted on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
"""Those of the system's own pods, beside others that the settings name."""


class CountedPod(NamedTuple):
    """A pod on a node.

    Attributes:
        slot: where `Snapshot.residents` has it.
    """

    node: str
    pod: Pod
    slot: int

    def counts_like(self, pod: Pod, node: str) -> bool:
        """Return whether counting this pod on that node instead changes nothing."""
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
    """Capacity of all nodes, kept up to date row by row.

    Attributes:
        residents: the pods on the nodes.
        namespaces: labels of the namespaces.
        move_windows: annotations of the namespaces whose pods are moved at some times only.
        exempt_namespaces: those of the system's own pods, to which holds do not apply.
        storage: claims, volumes and storage classes.
        lending: what holds lend, and to which of the pods.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        super().__init__()
        self._counted: dict[str, CountedPod] = {}
        self.residents = PodTable()
        self.namespaces: dict[str, Labels] = {}
        self.move_windows: dict[str, str] = {}
        self.exempt_namespaces = EXEMPT_NAMESPACES
        self.storage = Storage()
        self.lending = Lending()

    @property
    def node_count(self) -> int:
        """How many Node objects are known."""
        return int(self.exists.sum())

    def has_node(self, name: str) -> bool:
        """Whether the Node object is known."""
        row = self._row_of.get(name)
        return row is not None and bool(self.exists[row])

    def existing_rows(self) -> Rows:
        """Return the rows of all Node objects that are known."""
        return np.flatnonzero(self.exists)

    def labels_of(self, node: str) -> Labels:
        """Return the labels of a node; none of one that is not known."""
        row = self.row(node)
        return {} if row is None else self.topology.labels.of(row)

    def node_names(self) -> list[str]:
        """Return the names of all Node objects that are known."""
        return [self._names[row] for row in self.existing_rows()]

    def set_node(self, node: Node) -> None:
        """Set what a Node object says."""
        self._offer(self._totals[ALLOCATABLE].get(node.name, {}), node.allocatable)
        row = self._ensure_row(node.name)  # May replace the arrays.
        self.exists[row] = True
        self.topology.put(row, node)
        self._set(ALLOCATABLE, node.name, node.allocatable)
        if node.name in self.whole_nodes:
            self._recount_whole(node.name)

    def remove_node(self, name: str) -> None:
        """Forget a Node object; its pods and holds still count."""
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
        """Count a pod on a node, and nowhere else."""
        before = self._counted.get(pod.uid)
        if before is not None and before.counts_like(pod, node):
            self._counted[pod.uid] = before._replace(pod=pod)  # The old one can go.
            return
        self.uncount(pod.uid)
        self._pods_on[node] = self._pods_on.get(node, 0) + 1
        self._add_requested(node, pod.requests, 1)
        slot = self.residents.add(pod, self._row_of[node])
        self._counted[pod.uid] = CountedPod(node, pod, slot)
        self._borrow(node, pod)

    def count_all(self, pods: Sequence[Pod]) -> None:
        """Count pods on their nodes at once, each of which is not counted yet."""
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
        """Count a pod that is counted on another node."""
        before = self._counted[pod_uid]
        self._pods_on[node] = self._pods_on.get(node, 0) + 1
        self._add_requested(node, before.pod.requests, 1)
        self.residents.rows[before.slot] = self._row_of[node]
        self._leave(before)
        self._counted[pod_uid] = before._replace(node=node)
        self._borrow(node, before.pod)

    @contextmanager
    def unseen(self, pod_uid: str) -> Iterator[None]:
        """Let nobody see a pod among the residents meanwhile; what it requests still counts."""
        counted = self._counted.get(pod_uid)
        if counted is None:
            yield
            return
        self.residents.remove(counted.slot, counted.pod)
        try:
            yield
        finally:
            slot = self.residents.add(counted.pod, self._row_of[counted.node])
            self._counted[pod_uid] = counted._replace(slot=slot)

    def counted(self, pod_uid: str) -> CountedPod | None:
        """Return where a pod is counted; None if it is not."""
        return self._counted.get(pod_uid)

    def set_held(self, node: str, totals: Mapping[str, int], loans: Sequence[Loan] = ()) -> None:
        """Set what active reservations hold on a node, empty for nothing, and lend of it.

        With `NODES` among it that is the whole node, beside what its pods have.
        """
        self.lending.set(node, totals, loans)
        if totals or node in self._row_of:
            row = self._ensure_row(node)  # May replace the arrays.
            self.has_holds[row] = bool(totals)
            if NODES in totals or node in self.whole_nodes:
                self._mark_whole(node, row, totals)
            self._guard(node, row, is_guarded=bool(totals) or node in self._totals[RETURNING])
            self._set_held(node, self.lending.held(node) or totals)

    def _set_held(self, node: str, held: Totals) -> None:
        self._set(HELD, node, self._with_rest(node, held) if node in self.whole_nodes else held)

    def set_returning(self, node: str, totals: Mapping[str, int]) -> None:
        """Set what pods of a node have that comes back to reservations once these pods go."""
        if totals or node in self._row_of:
            row = self._ensure_row(node)  # May replace the arrays.
            self._guard(node, row, is_guarded=bool(totals) or bool(self.has_holds[row]))
            self._set(RETURNING, node, totals)

    def _guard(self, node: str, row: int, *, is_guarded: bool) -> None:
        self.guarded[row] = is_guarded
        (self.holding.add if is_guarded else self.holding.discard)(node)
        (self.without_holds.discard if is_guarded else self.without_holds.add)(node)

    def mark_unreadable(self, node: str, *, is_unreadable: bool) -> None:
        """Set whether something on a node cannot be read; the node may be unknown."""
        (self.unreadable_nodes.add if is_unreadable else self.unreadable_nodes.discard)(node)
        row = self._row_of.get(node)
        if row is not None:
            self.has_unreadable[row] = is_unreadable

    def fork(self) -> Snapshot:
        """Return the capacity of now, to try on it what nobody else is to see.

        Its amounts are its own (`take`). What nodes say of themselves, and which pods are there, it
        shares with this one. So it grows with it when nodes join, but sees none of these, and none
        any more of those that leave.
        """
        forked = copy(self)
        forked._part()  # noqa: SLF001 - one of us
        self._forks.add(forked)
        return forked

    def take(self, node: str, amounts: Totals) -> None:
        """Count amounts on a node as a pod's that is there."""
        self.spoken_for.add(node)
        self._add_requested(node, self._free_on(node) if NODES in amounts else amounts, 1)

    def _borrow(self, node: str, pod: Pod) -> None:
        """Count a pod as a borrower, if it may be one."""
        if pod.constraints.tolerates_recall:
            self.lending.add(node, pod)
            self._recount_held(node)

    def _recount_held(self, node: str) -> None:
        """Count what is held there and not borrowed."""
        held = self.lending.held(node)
        if held:
            self._set_held(node, held)

    def _leave(self, before: CountedPod) -> None:
        """Count no longer what a pod takes of a node."""
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
            totals[name] = totals.get(name, 0) + sign * amount
        self._write(REQUESTED, node, totals, requests)
        if node in self.whole_nodes:
            self._recount_whole(node)
