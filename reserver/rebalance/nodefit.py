"""Judges whether a pod fits on a node by upstream's ``nodeFit``.

``NodeFit`` in pkg/descheduler/node checks the cordon, node selector and required node affinity,
taints, the pod's own required anti-affinity against the pods on that node, and the free room there.
It ignores the other rules of kube-scheduler, and room that another pod of the same cycle was
promised.

Pods that ask for the same fit on the same nodes, so each kind of pod is judged once for all nodes,
and again only for nodes that a pod has left.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import numpy as np

from reserver.cluster.byte_cache import ByteCache
from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.cluster.labels import integer
from reserver.rebalance.anti_affinity import AntiAffinityTerm, terms_of_all
from reserver.rebalance.free_resources import FreeResources
from reserver.rebalance.pod_index import NO_ROW, Alike, Indexes, Once, PodIndex

_KNOWN_BYTES = 64 * 2**20
_ROW_BYTES = 256


class _Kind(NamedTuple):
    """The properties that decide where a pod fits, by number."""

    where: int
    asked: int
    apart: int


class _Known:
    """The rows that a kind of pods fits on.

    Attributes:
        rows: bool array.
        seen: the number of evicted pods at the last update.
        among: the rows of the last query.
        witnesses: two rows that the kind fits on, if there are two.
    """

    __slots__ = ("among", "rows", "seen", "witnesses")

    def __init__(self, rows: Bools, seen: int) -> None:
        self.rows = rows
        self.seen = seen
        self.among: Bools | None = None
        self.witnesses: list[int] = []

    def fits_beside(self, row: int, among: Bools) -> bool:
        """Return whether it fits on one of some rows, which never change, but for one row."""
        if self.among is not among:
            self.among = among
            self.witnesses = np.flatnonzero(self.rows & among)[:2].tolist()
        return any(witness != row for witness in self.witnesses)


class NodeFit:
    """The nodes that pods fit on, updated after each eviction."""

    def __init__(self, index: PodIndex) -> None:
        """Judge on an index."""
        self._index = index
        pods = index.pods
        self._where = Alike([pod.pod.constraints for pod in pods], _where)
        numbers = {_where(each): number for number, each in enumerate(self._where.values)}
        self._number: Once[Constraints, int] = Once(lambda each: numbers[_where(each)])
        self._asked = Alike([pod.requests for pod in pods], lambda asked: frozenset(asked.items()))
        self._aparts = Alike(terms_of_all(pods), tuple)
        self._known: ByteCache[_Kind, _Known] = ByteCache(_KNOWN_BYTES)
        self._admitted: ByteCache[int, Bools] = ByteCache(_KNOWN_BYTES)
        self._matching: ByteCache[int, Bools] = ByteCache(_KNOWN_BYTES)
        self._crowds: ByteCache[AntiAffinityTerm, Indexes] = ByteCache(_KNOWN_BYTES)
        self._rooms = FreeResources(index, self._asked)

    def fits_elsewhere(self, pod: int, among: Bools) -> bool:
        """Return whether a pod fits on one of some rows other than its own.

        A pod that leaves only makes room, so a yes of before stays one.
        """
        row, known = int(self._index.rows[pod]), self._fitting(pod)
        if known.fits_beside(row, among):
            return True
        if self._is_updated(known, pod) and known.fits_beside(row, among):
            return True
        return self._fits_beside_namesakes(pod, among)

    def fits_anywhere(self, pod: int, among: Bools) -> bool:
        """Return whether a pod fits on one of some rows; on its own it has room."""
        row = int(self._index.rows[pod])
        if row != NO_ROW and among[row] and self._may_be_on(pod, row):
            return True
        return self.fits_elsewhere(pod, among)

    def admitting(self, demands: Constraints) -> Bools:
        """Return the rows whose labels meet a pod's demands and whose taints it tolerates."""
        return self._kept(
            self._admitted, demands, lambda: self.tolerated(demands) & self.matching(demands)
        )

    def matching(self, demands: Constraints) -> Bools:
        """Return the rows that meet a node selector and required node affinity."""
        return self._kept(self._matching, demands, lambda: self._matching_labels(demands))

    def _kept(
        self, known: ByteCache[int, Bools], demands: Constraints, judge: Callable[[], Bools]
    ) -> Bools:
        number = self._number(demands)
        rows = known.get(number)
        if rows is None:
            rows = judge()
            known.put(number, rows, rows.nbytes + _ROW_BYTES)
        return rows

    def _matching_labels(self, demand: Constraints) -> Bools:
        topology = self._index.topology
        if demand.are_too_many:
            return np.zeros(len(self._index.nodes), dtype=np.bool_)
        rows = topology.labels.matching(demand.node_selector)
        return rows if demand.node_terms is None else rows & topology.meeting(demand.node_terms)

    def tolerated(self, demands: Constraints) -> Bools:
        """Return the rows whose taints that keep pods away are all tolerated."""
        tolerations = demands.tolerations
        return ~self._index.topology.taints.where(
            lambda taints: not all(tolerates(tolerations, taint) for taint in taints)
        )

    def _fitting(self, pod: int) -> _Known:
        """Return the rows that a pod fits on; the value of its own row is undefined."""
        kind = _Kind(
            int(self._where.ids[pod]), int(self._asked.ids[pod]), int(self._aparts.ids[pod])
        )
        known = self._known.get(kind)
        if known is None:
            self._rooms.catch_up()
            known = _Known(self._judge(pod, slice(None)), self._rooms.seen)
            self._known.put(kind, known, known.rows.nbytes + _ROW_BYTES)
        return known

    def _is_updated(self, known: _Known, pod: int) -> bool:
        """Judge the rows again that pods have left since; return whether there are any."""
        self._rooms.catch_up()
        index = self._index
        left = index.rows[index.departed[known.seen :]]
        left = np.unique(left[left != NO_ROW])
        known.rows[left] = self._judge(pod, left)
        known.seen, known.among = self._rooms.seen, None
        return len(left) > 0

    def _judge(self, pod: int, rows: slice | Indexes) -> Bools:
        refused = ~self.admitting(self._where.of(pod)) | self._index.topology.cordoned
        for term in self._aparts.of(pod):
            refused |= self._is_taken(term)
        fitting: Bools = self._rooms.has_room(pod, rows) & ~refused[rows]
        return fitting

    def _is_taken(self, term: AntiAffinityTerm) -> Bools:
        """Return the rows where a pod stands that a term keeps away, and that have its label."""
        index = self._index
        there = self._kept_away(term)
        there = there[index.is_active[there] & ~index.is_gone[there]]
        taken = np.zeros(len(index.nodes) + 1, dtype=np.bool_)  # The last one is that of NO_ROW.
        taken[index.rows[there]] = True
        return taken[:-1] & index.topology.labels.column(term.topology_key).present()

    def _kept_away(self, term: AntiAffinityTerm) -> Indexes:
        """Return the pods that a term of another one is about."""
        known = self._crowds.get(term)
        if known is None:
            known = self._index.found(term.namespaces, term.selector)
            self._crowds.put(term, known, known.nbytes + _ROW_BYTES)
        return known

    def _may_be_on(self, pod: int, row: int) -> bool:
        """Return whether all but the room of a row suits a pod; its namesakes do not count."""
        index = self._index
        if index.topology.cordoned[row] or not self.admitting(self._where.of(pod))[row]:
            return False
        own = index.pods[pod].name.name
        labels = index.nodes[row].node.labels
        return not any(
            index.pods[other].name.name != own and term.is_about(index.pods[other])
            for term in self._aparts.of(pod)
            if term.topology_key in labels
            for other in index.listed(row)
        )

    def _fits_beside_namesakes(self, pod: int, among: Bools) -> bool:
        """Return whether only pods of its own name, in other namespaces, keep a pod from a row."""
        index = self._index
        if not self._aparts.of(pod):
            return False
        rows = {int(index.rows[other]) for other in index.namesakes(pod)} - {NO_ROW}
        return any(
            among[row]
            and self._may_be_on(pod, row)
            and bool(self._rooms.has_room(pod, np.array([row]))[0])
            for row in rows - {int(index.rows[pod])}
        )


def _where(constraints: Constraints) -> Hashable:
    return (
        constraints.tolerations,
        constraints.node_selector,
        constraints.node_terms,
        constraints.are_too_many,
    )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether one of these tolerates a taint; numbers are compared.

    Upstream compares them whatever kube-scheduler does (TaintTolerationComparisonOperators).
    """
    return any(
        toleration.tolerates(taint) or _compares(toleration, taint) for toleration in tolerations
    )


def _compares(toleration: Toleration, taint: Taint) -> bool:
    if toleration.operator not in {"Gt", "Lt"}:
        return False
    if not toleration._replace(operator="Exists").tolerates(taint):
        return False
    bound, value = integer(toleration.value), integer(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if toleration.operator == "Gt" else value < bound
