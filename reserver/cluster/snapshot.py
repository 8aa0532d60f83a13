"""The cluster's capacity as one int64 matrix: nodes × resources × {allocatable, requested, held}.

A pod asks for few resources, and perhaps about all nodes: what all nodes have of one resource lies
side by side in memory.

A node gets a row when anything is known of it: its Node object, a pod, a hold. A resource gets a
column when a node offers it; nobody can have a resource that no node offers. Each cell is written
from an exact total, so it never drifts, and is clamped instead of overflowing. A clamped cell still
says correctly that there is no room. How much is lacking, or is left once something goes, only the
exact totals say (`Snapshot.amounts`, docs/adr/0015).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import repeat
from typing import NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Headroom, Int64s, clamped
from reserver.cluster.labels import Labels
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.cluster.pod_table import PodTable
from reserver.cluster.storage import Storage
from reserver.cluster.topology import Topology

Rows = NDArray[np.intp]

EXEMPT_NAMESPACES = frozenset({"kube-system"})
"""Those of the system's own pods, beside others that the settings name."""

_NO_ROW = -1
_LEAST_WIDTH = 8
_ALLOCATABLE, _REQUESTED, _HELD = range(3)

Totals = Mapping[str, int]


class Amounts(NamedTuple):
    """One resource of one node, exactly: millicores of cpu, base units of all else.

    Attributes:
        allocatable: what the node offers to pods.
        requested: what its pods take, including those being bound.
        held: what active reservations hold, for anybody.
    """

    allocatable: int
    requested: int
    held: int


class CountedPod(NamedTuple):
    """A pod on a node.

    Attributes:
        node: the node.
        pod: the pod.
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
            and own.volume_claims == pod.volume_claims
        )


class Snapshot:
    """Capacity of all nodes, kept up to date row by row.

    A row lives as long as anything is known of its node: the Node object, pods, or holds.

    Attributes:
        allocatable: int64 array, rows × columns, of what nodes offer to pods.
        requested: the same shape, of what their pods take, including those being bound.
        held: the same shape, of what active reservations hold.
        has_holds: bool array, rows: something is held there.
        holding: the names of these nodes.
        without_holds: the names of all other rows.
        headroom: what pods may request beside the holds.
        exists: bool array, rows: the Node object is known.
        in_doubt: bool array, rows: something there cannot be read, so more may be taken, or less
            offered, than is known.
        doubtful: the names of these nodes, and of such as are not known.
        columns: resource name to column; resources that no node offers any more may linger.
        layout: changes when the columns of resources change.
        topology: labels, taints and cordons of nodes, by row.
        residents: the pods on the nodes.
        namespaces: labels of the namespaces.
        exempt_namespaces: those of the system's own pods, to which holds do not apply.
        storage: claims, volumes and storage classes.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.columns: dict[str, int] = {}
        self.layout = 0
        self._offers: Counter[str] = Counter()
        self._row_of: dict[str, int] = {}
        self._names: list[str] = []
        self._free_rows: list[int] = []
        self._counted: dict[str, CountedPod] = {}
        self._pods_on: dict[str, int] = {}
        self._totals: tuple[dict[str, Totals], ...] = ({}, {}, {})
        self._cells: NDArray[np.int64] = np.zeros((3, 8, 64), dtype=np.int64)
        self.has_holds: Bools = np.zeros(64, dtype=np.bool_)
        self.holding: set[str] = set()
        self.without_holds: set[str] = set()
        self.exists: Bools = np.zeros(64, dtype=np.bool_)
        self.headroom = Headroom(self.columns, self._cells, ~self.has_holds)
        self.in_doubt: Bools = np.zeros(64, dtype=np.bool_)
        self.doubtful: set[str] = set()
        self.topology = Topology(64)
        self.residents = PodTable()
        self.namespaces: dict[str, Labels] = {}
        self.exempt_namespaces = EXEMPT_NAMESPACES
        self.storage = Storage()
        self._forks = WeakSet[Snapshot]()

    @property
    def allocatable(self) -> Int64s:
        """What nodes offer to pods."""
        return self._layer(_ALLOCATABLE)

    @property
    def requested(self) -> Int64s:
        """What pods on the nodes take."""
        return self._layer(_REQUESTED)

    @property
    def held(self) -> Int64s:
        """What active reservations hold."""
        return self._layer(_HELD)

    def amounts(self, node: str, resource: str) -> Amounts:
        """Return one resource of a node; zeros if nothing is known of it."""
        return Amounts(*(totals.get(node, {}).get(resource, 0) for totals in self._totals))

    @property
    def node_count(self) -> int:
        """How many Node objects are known."""
        return int(self.exists.sum())

    def has_node(self, name: str) -> bool:
        """Whether the Node object is known."""
        row = self._row_of.get(name)
        return row is not None and bool(self.exists[row])

    def row(self, name: str) -> int | None:
        """Return the row of a node, None when nothing is known of it."""
        return self._row_of.get(name)

    def rows(self, names: Sequence[str]) -> Rows:
        """Return the row of each name, -1 where nothing is known of it."""
        return np.fromiter(self.each_row(names), dtype=np.intp, count=len(names))

    def each_row(self, names: Sequence[str]) -> Iterator[int]:
        """Yield what `rows` returns, looked up one by one."""
        return map(self._row_of.get, names, repeat(_NO_ROW))

    def existing_rows(self) -> Rows:
        """Return the rows of all Node objects that are known."""
        return np.flatnonzero(self.exists)

    def node_names(self) -> list[str]:
        """Return the names of all Node objects that are known."""
        return [self._names[row] for row in self.existing_rows()]

    def name_of(self, row: int) -> str:
        """Return the node of a row."""
        return self._names[row]

    def set_node(self, node: Node) -> None:
        """Set what a Node object says."""
        self._offer(self._totals[_ALLOCATABLE].get(node.name, {}), node.allocatable)
        row = self._ensure_row(node.name)  # May replace the arrays.
        self.exists[row] = True
        self.topology.put(row, node)
        self._set(_ALLOCATABLE, node.name, node.allocatable)

    def remove_node(self, name: str) -> None:
        """Forget a Node object; its pods and holds still count."""
        row = self._row_of.get(name)
        if row is not None:
            for each in (self, *self._forks):  # The row may be handed to another node.
                each.exists[row] = False
            self.topology.put(row, None)
            self._offer(self._totals[_ALLOCATABLE].get(name, {}), {})
            self._set(_ALLOCATABLE, name, {})

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

    def set_held(self, node: str, totals: Mapping[str, int]) -> None:
        """Set what active reservations hold on a node; empty for nothing."""
        if totals or node in self._row_of:
            row = self._ensure_row(node)  # May replace the arrays.
            self.has_holds[row] = bool(totals)
            (self.holding.add if totals else self.holding.discard)(node)
            (self.without_holds.discard if totals else self.without_holds.add)(node)
            self._set(_HELD, node, totals)

    def doubt(self, node: str, *, is_doubtful: bool) -> None:
        """Set whether something on a node cannot be read; the node may be unknown."""
        (self.doubtful.add if is_doubtful else self.doubtful.discard)(node)
        row = self._row_of.get(node)
        if row is not None:
            self.in_doubt[row] = is_doubtful

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

    def _part(self) -> None:
        """Share amounts with no other snapshot any more."""
        self.columns = dict(self.columns)
        self._row_of, self._names = dict(self._row_of), list(self._names)
        self._totals = tuple(map(dict, self._totals))
        self._cells = self._cells.copy()
        self.holding, self.without_holds = set(self.holding), set(self.without_holds)
        self.has_holds = self.has_holds.copy()
        self.exists, self.in_doubt = self.exists.copy(), self.in_doubt.copy()
        self._forks = WeakSet()
        self._compare_anew()

    def take(self, node: str, amounts: Totals) -> None:
        """Count amounts on a node as a pod's that is there."""
        self._add_requested(node, amounts, 1)

    def _layer(self, layer: int) -> Int64s:
        cells: Int64s = self._cells[layer].T
        return cells

    def _leave(self, before: CountedPod) -> None:
        """Count no longer what a pod takes of a node."""
        node = before.node
        self._pods_on[node] -= 1
        if self._pods_on[node]:
            self._add_requested(node, before.pod.requests, -1)
        else:
            del self._pods_on[node]
            self._set(_REQUESTED, node, {})

    def _add_requested(self, node: str, requests: Mapping[str, int], sign: int) -> None:
        totals = dict(self._totals[_REQUESTED].get(node, {}))
        for name, amount in requests.items():
            totals[name] = totals.get(name, 0) + sign * amount
        self._write(_REQUESTED, node, totals, requests)

    def _set(self, layer: int, node: str, totals: Totals) -> None:
        changed = self._totals[layer].get(node, {}).keys() | totals.keys()
        # What no node offers has no column; a tenant may hold thousands of such names on one node.
        self._write(layer, node, totals, self.columns.keys() & changed)

    def _write(self, layer: int, node: str, totals: Totals, changed: Iterable[str]) -> None:
        row = self._ensure_row(node)
        columns = []
        for name in changed:
            column = self.columns.get(name)
            if column is not None:
                self._cells[layer, column, row] = clamped(totals.get(name, 0))
                columns.append(column)
        if layer == _HELD or self.has_holds[row]:
            is_known = bool(self.exists[row]) or not self.has_holds[row]
            self.headroom.put(row, columns, is_known=is_known)
        if totals:
            self._totals[layer][node] = totals
        else:
            self._totals[layer].pop(node, None)
            self._release_row(node)

    def _offer(self, before: Totals, after: Totals) -> None:
        """Count what a node offers now instead of before, and give each resource a column."""
        self._offers.update(after.keys() - before.keys())
        self._add_columns([name for name in after if name not in self.columns])
        for name in before.keys() - after.keys():
            self._offers[name] -= 1
            if not self._offers[name]:
                del self._offers[name]
        if len(self.columns) > _LEAST_WIDTH + 2 * len(self._offers):
            self._pack_columns()

    def _add_columns(self, names: Sequence[str]) -> None:
        for name in names:
            self.columns[name] = len(self.columns)
        width = self._cells.shape[1]
        if len(self.columns) > width:
            more = max(len(self.columns), 2 * width) - width
            self._cells = np.pad(self._cells, ((0, 0), (0, more), (0, 0)))
        for layer, totals_by_node in enumerate(self._totals if names else ()):
            for node, totals in totals_by_node.items():
                for name in totals.keys() & names:
                    cell = clamped(totals[name])
                    self._cells[layer, self.columns[name], self._row_of[node]] = cell
        if names:
            self._compare_anew()

    def _pack_columns(self) -> None:
        """Drop the columns of resources that no node offers any more."""
        kept = [name for name in self.columns if name in self._offers]
        cells = self._cells[:, [self.columns[name] for name in kept]]
        spare = max(_LEAST_WIDTH, 2 * len(kept)) - len(kept)
        self._cells = np.pad(cells, ((0, 0), (0, spare), (0, 0)))
        self.columns = {name: column for column, name in enumerate(kept)}
        self._compare_anew()
        self.layout += 1

    def _ensure_row(self, name: str) -> int:
        row = self._row_of.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
            self._grow_rows(row)
        self._row_of[name] = row
        self.without_holds.add(name)
        self.in_doubt[row] = name in self.doubtful
        return row

    def _grow_rows(self, row: int) -> None:
        size = self._cells.shape[2]
        if row >= size:
            more = max(size // 4, 16)  # All of them are looked at, time and again.
            for each in (self, *self._forks):
                each._pad_rows(more)  # noqa: SLF001 - one of us
            self.topology.grow(size + more)

    def _pad_rows(self, more: int) -> None:
        self._cells = np.pad(self._cells, ((0, 0), (0, 0), (0, more)))
        self.has_holds = np.pad(self.has_holds, (0, more))
        self.exists = np.pad(self.exists, (0, more))
        self.in_doubt = np.pad(self.in_doubt, (0, more))
        self._compare_anew()

    def _compare_anew(self) -> None:
        """Forget where requests fit: rows or columns are others now."""
        self.headroom = Headroom(self.columns, self._cells, self.exists | ~self.has_holds)

    def _release_row(self, name: str) -> None:
        row = self._row_of[name]
        if not (self.exists[row] or self.has_holds[row] or name in self._pods_on):
            del self._row_of[name]
            self.without_holds.discard(name)
            self._free_rows.append(row)
