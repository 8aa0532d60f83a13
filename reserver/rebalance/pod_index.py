"""The index of a cluster, as strategies see it: rows of nodes, indexes of pods.

Pods that are alike share a small number (`Alike`), so that a question is asked once for all pods
with equal labels, or equal constraints, and answered for each by a look-up in numpy. A pod that is
evicted is gone from the index at once, as it is from upstream's once its watch has caught up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint
from reserver.cluster.labels import EVERYTHING, UNREAD, Labels, LabelTable, Selector
from reserver.cluster.node import Topology
from reserver.rebalance.arguments.base import ALL, Choice
from reserver.rebalance.cluster_state import (
    PREFER_NO_EVICTION,
    ClusterState,
    ListedNode,
    ListedPod,
    Preference,
    SpreadRule,
)

Indexes = NDArray[np.intp]

NO_ROW = -1
"""The row of a pod that is pending, or whose node is unknown."""

_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}
_LAST = -(2**63)

_ENDED = frozenset({"Succeeded", "Failed"})

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """Results by value: computed once for equal values, and looked up at once for the same object.

    Most pods of a template share their values, and to hash one takes as long as it is deep.
    """

    def __init__(self, find: Callable[[K], V]) -> None:
        """Remember what this returns."""
        self._find = find
        self._of_same: dict[int, tuple[K, V]] = {}  # A key that is kept keeps its id.
        self._of_equal: dict[K, V] = {}

    def __call__(self, key: K) -> V:
        """Return what follows from a value."""
        known = self._of_same.get(id(key))
        if known is None:
            if key not in self._of_equal:
                self._of_equal[key] = self._find(key)
            known = self._of_same[id(key)] = key, self._of_equal[key]
        return known[1]


class Alike(Generic[V]):
    """Pods by a value that many of them share.

    Attributes:
        ids: array by pod: the number of its value.
        values: by number.
    """

    def __init__(self, values: Sequence[V], key: Callable[[V], Hashable]) -> None:
        """Number the values of all pods, in their order; equal keys make equal values.

        Most values that are equal are the same object, so few keys are asked for.
        """
        numbers: dict[Hashable, int] = {}
        same = list(map(id, values))
        number_of: dict[int, int] = {}
        self.values: list[V] = []
        for at, value in dict(zip(same, values, strict=True)).items():
            number_of[at] = numbers.setdefault(key(value), len(numbers))
            if number_of[at] == len(self.values):
                self.values.append(value)
        self.ids: Indexes = np.fromiter(map(number_of.__getitem__, same), np.intp, len(same))

    def of(self, pod: int) -> V:
        """Return the value of a pod."""
        value: V = self.values[self.ids[pod]]
        return value

    def where(self, test: Callable[[V], bool]) -> Bools:
        """Return, for each pod, whether its value passes a test."""
        passing = np.array([test(value) for value in self.values], dtype=np.bool_)
        found: Bools = passing[self.ids]
        return found

    def groups(self, pods: Indexes) -> Iterator[tuple[V, Indexes]]:
        """Yield each value of the given pods, with the pods that have it."""
        ids = self.ids[pods]
        order = np.argsort(ids, kind="stable")
        ends = np.flatnonzero(np.diff(ids[order], append=-1)) + 1
        start = 0
        for end in ends.tolist():
            same = pods[order[start:end]]
            yield self.of(int(same[0])), same
            start = end


class PodIndex:
    """The pods and nodes of a cluster, numbered.

    Attributes:
        nodes: all nodes, by row; sorted by name.
        row_of: rows by name.
        ready: bool array, rows: the node is ready.
        shown: bool array, rows: strategies are shown the node: it is ready, and the policy's
            selector matches it.
        pods: all pods, by index; sorted by namespace and name.
        rows: array by pod: the row of its node, or `NO_ROW`.
        is_active: bool array by pod: it has neither succeeded nor failed.
        is_gone: bool array by pod: it has been evicted.
        on: indexes of the pods on each row that are not gone, of any phase, in order.
        namespaces: the pods by their namespace.
        owned: how many pods that are not gone name an owner, by the owner's UID.
        departed: the pods that are gone, in the order in which they went.
    """

    def __init__(
        self,
        cluster: ClusterState,
        node_selector: Selector = EVERYTHING,
        cost: Callable[[ListedPod], float] = lambda _: 0.0,
    ) -> None:
        """Number the pods and nodes of a cluster, without evictions.

        Args:
            cost: the cost of moving a pod: of equally important pods the cheapest leaves first.
        """
        self._cost = cost
        self.cluster = cluster
        self.nodes: list[ListedNode] = list(cluster.nodes.values())
        self.pods: Sequence[ListedPod] = sorted(cluster.pods, key=lambda pod: pod.name)
        self.row_of = {node.name: row for row, node in enumerate(self.nodes)}
        ready = [node.is_ready for node in self.nodes]
        self.ready: Bools = np.array(ready, dtype=np.bool_)
        meant = [node_selector.matches(node.node.labels) for node in self.nodes]
        self.shown: Bools = self.ready & np.array(meant, dtype=np.bool_)
        rows = [self.row_of.get(pod.node, NO_ROW) for pod in self.pods]
        self.rows: Indexes = np.array(rows, dtype=np.intp)
        active = [pod.phase not in _ENDED for pod in self.pods]
        self.is_active: Bools = np.array(active, dtype=np.bool_)
        self.is_gone: Bools = np.zeros(len(self.pods), dtype=np.bool_)
        self.on: list[list[int]] = [[] for _ in self.nodes]
        for index, row in enumerate(rows):
            if row != NO_ROW:
                self.on[row].append(index)
        self.namespaces = Alike([pod.name.namespace for pod in self.pods], str)
        self.owned = Counter(owner.uid for pod in self.pods for owner in pod.owners)
        self.departed: list[int] = []
        self._spans = _spans([pod.name.namespace for pod in self.pods])
        self._labels = Alike([pod.pod.labels for pod in self.pods], _labels_key)
        self._table = LabelTable(len(self._labels.values))
        for number, labels in enumerate(self._labels.values):
            self._table.put(number, labels)
        read = [labels is not UNREAD for labels in self._labels.values]
        self._is_read: Bools = np.array(read, dtype=np.bool_)
        self._by_name: dict[str, list[int]] | None = None

    @cached_property
    def topology(self) -> Topology:
        """Labels, taints and cordons by row."""
        topology = Topology(len(self.nodes))
        for row, node in enumerate(self.nodes):
            topology.put(row, node.node)
        return topology

    @cached_property
    def taints(self) -> dict[int, tuple[Taint, ...]]:
        """The taints of nodes that have some, soft ones too, by row."""
        return {row: node.taints for row, node in enumerate(self.nodes) if node.taints}

    @cached_property
    def terminating(self) -> Bools:
        """Bool array by pod: it is being deleted."""
        return np.array([pod.pod.terminating for pod in self.pods], dtype=np.bool_)

    @cached_property
    def constraints(self) -> Alike[Constraints]:
        """The placement constraints of the pods."""
        return Alike([pod.pod.constraints for pod in self.pods], id)

    @cached_property
    def spreads(self) -> Alike[tuple[SpreadRule, ...]]:
        """Topology spread constraints of the pods."""
        return Alike([pod.spreads for pod in self.pods], id)

    @cached_property
    def preferences(self) -> Alike[tuple[Preference, ...]]:
        """Preferred node affinities of the pods."""
        return Alike([pod.preferences for pod in self.pods], id)

    @cached_property
    def ranks(self) -> Indexes:
        """Intp array by pod: its place among all, the least important first.

        By priority, QoS class, the annotation `PREFER_NO_EVICTION`
        (SortPodsBasedOnPriorityLowToHigh in pkg/descheduler/pod), cost, and name.
        """
        priorities = [_LAST if pod.priority is None else pod.priority for pod in self.pods]
        classes = [_QOS.get(pod.qos, len(_QOS)) for pod in self.pods]
        prefers = [PREFER_NO_EVICTION in pod.annotations for pod in self.pods]
        tenths = [round(self._cost(pod) * 10) for pod in self.pods]
        keys = tuple(
            np.array(each, dtype=np.int64) for each in (tenths, prefers, classes, priorities)
        )
        ranks: Indexes = np.zeros(len(self.pods), dtype=np.intp)
        ranks[np.lexsort(keys)] = np.arange(len(ranks))
        return ranks

    def least_first(self, pods: Sequence[int] | Indexes) -> list[int]:
        """Return pods in the order in which they are missed least."""
        found = np.asarray(pods, dtype=np.intp)
        order: list[int] = found[np.argsort(self.ranks[found])].tolist()
        return order

    def listed(self, row: int) -> list[int]:
        """Return the pods on a row that take something from their node."""
        active = self.is_active
        return [pod for pod in self.on[row] if active[pod]]

    def shown_rows(self) -> list[int]:
        """Return the rows of the nodes that strategies are shown."""
        rows: list[int] = np.flatnonzero(self.shown).tolist()
        return rows

    def matching(self, selector: Selector) -> Bools:
        """Return, for each pod, whether a selector matches its labels."""
        found: Bools = self._matching_sets(selector)[self._labels.ids]
        return found

    def chosen(self, namespaces: Choice, selector: Selector = EVERYTHING) -> Bools:
        """Return, for each pod, whether namespace and labels are among those to look at."""
        if namespaces == ALL:
            return self.matching(selector)
        return self.namespaces.where(namespaces.has) & self.matching(selector)

    def found(self, namespaces: Iterable[str], selector: Selector) -> Indexes:
        """Return the pods of some namespaces whose labels a selector matches."""
        matching = self._matching_sets(selector)
        parts = [
            span.start + np.flatnonzero(matching[self._labels.ids[span]])
            for name in sorted(namespaces)
            if (span := self._spans.get(name)) is not None
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def span(self, namespace: str) -> slice:
        """Return where the pods of a namespace stand among all pods."""
        return self._spans[namespace]

    def _matching_sets(self, selector: Selector) -> Bools:
        matching = self._table.matching(selector)
        if selector.requirements:
            matching &= self._is_read
        return matching

    def namesakes(self, pod: int) -> list[int]:
        """Return all pods that have a pod's name, in whatever namespace; itself as well."""
        if self._by_name is None:
            self._by_name = {}
            for index, each in enumerate(self.pods):
                self._by_name.setdefault(each.name.name, []).append(index)
        return self._by_name[self.pods[pod].name.name]

    def evict(self, pod: int) -> None:
        """Take a pod away."""
        self.is_gone[pod] = True
        self.departed.append(pod)
        row = int(self.rows[pod])
        if row != NO_ROW:
            self.on[row].remove(pod)
        self.owned.subtract(owner.uid for owner in self.pods[pod].owners)


def _spans(names: Sequence[str]) -> dict[str, slice]:
    """Return where each name stands in a sorted list of names."""
    starts = {name: index for index, name in reversed(list(enumerate(names)))}
    ends = {name: index + 1 for index, name in enumerate(names)}
    return {name: slice(starts[name], end) for name, end in ends.items()}


def _labels_key(labels: Labels) -> Hashable:
    return labels is UNREAD, frozenset(labels.items())
