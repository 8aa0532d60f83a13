"""The free room of each node as upstream's ``nodeFit`` counts it, updated with each eviction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools
from reserver.rebalance.cluster_state import Amounts
from reserver.rebalance.pod_index import NO_ROW, Alike, Indexes, PodIndex

MOST = 2**50
"""No node offers more of anything; sums over the pods of a node stay within int64."""

_BASIC = frozenset({"cpu", "memory", "pods"})


class FreeResources:
    """Free resources of each node.

    Attributes:
        seen: the number of evicted pods that are accounted for.
    """

    def __init__(self, index: PodIndex, asked: Alike[Amounts]) -> None:
        """Count all pods that are there.

        Args:
            index: the nodes and pods.
            asked: what each pod requests.
        """
        self._index = index
        self._asked = asked
        self._columns = {name: column for column, name in enumerate(_names(index))}
        self._free = self._all()
        self.seen = len(index.departed)

    def has_room(self, pod: int, rows: slice | Indexes) -> Bools:
        """Return which of some rows have room for a pod."""
        asked = self._asked.of(pod)
        columns = [self._columns[name] for name in asked]
        amounts = np.array([min(amount, MOST) for amount in asked.values()], dtype=np.int64)
        enough: Bools = np.all(self._free[rows][:, columns] >= amounts, axis=1)
        return enough

    def catch_up(self) -> None:
        """Return the room of pods that were evicted since the last call."""
        index = self._index
        for pod in index.departed[self.seen :]:
            row = int(index.rows[pod])
            if row != NO_ROW and index.is_active[pod]:
                offered = index.nodes[row].node.allocatable
                for name, amount in index.pods[pod].requests.items():
                    if name in offered or name in _BASIC:
                        self._free[row, self._columns[name]] += min(amount, MOST)
        self.seen = len(index.departed)

    def _all(self) -> NDArray[np.int64]:
        """Return allocatable without requests, rows × resources.

        A resource that a node does not offer is never free there, whatever its pods request.
        """
        index, columns = self._index, self._columns
        free = np.zeros((len(index.nodes), len(columns)), dtype=np.int64)
        is_offered = np.zeros(free.shape, dtype=np.bool_)
        is_offered[:, [columns[name] for name in _BASIC]] = True
        for row, node in enumerate(index.nodes):
            for name, amount in node.node.allocatable.items():
                free[row, columns[name]] = min(amount, MOST)
                is_offered[row, columns[name]] = True
        asked = np.zeros((len(self._asked.values), len(columns)), dtype=np.int64)
        for number, amounts in enumerate(self._asked.values):
            for name, amount in amounts.items():
                asked[number, columns[name]] = min(amount, MOST)
        there = np.flatnonzero(index.is_active & ~index.is_gone & (index.rows != NO_ROW))
        taken = np.zeros(free.shape, dtype=np.int64)
        np.add.at(taken, index.rows[there], asked[self._asked.ids[there]])
        free -= np.where(is_offered, taken, 0)
        return free


def _names(index: PodIndex) -> dict[str, None]:
    """Return the resources that nodes offer or pods request, in a fixed order."""
    names = dict.fromkeys(sorted(_BASIC))
    for node in index.nodes:
        names |= dict.fromkeys(node.node.allocatable)
    for asked in {id(pod.requests): pod.requests for pod in index.pods}.values():
        names |= dict.fromkeys(asked)
    return names
