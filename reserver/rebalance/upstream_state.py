"""The state that counts evictions: an evicted pod is forgotten, and nobody asks where it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.cluster.labels import EVERYTHING, Selector
from reserver.rebalance.anti_affinity import Crowd
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.candidate import Floats, K, by_row
from reserver.rebalance.cluster_state import Preference
from reserver.rebalance.evictor import Evictor
from reserver.rebalance.nodefit import tolerates
from reserver.rebalance.pod_index import Once, PodIndex


class UpstreamState:
    """A cluster that pods are evicted from, for one profile.

    Attributes:
        index: the pods and nodes, without evicted pods.
        evictor: judges which pods may be evicted now.
        now: unix seconds.
        rows: by pod: the row of the node that it is on, or was on.
        offered: bool array, rows: strategies are shown this node.
        tries_others: upstream evicts the last copies of a node, and tries no others.
    """

    tries_others = False

    def __init__(self, index: PodIndex, evictor: Evictor, now: float) -> None:
        """Judge the pods of an index at a moment in unix seconds."""
        self.index = index
        self.evictor = evictor
        self.now = now
        self.rows = index.rows
        self.offered = index.shown
        self.weights = Once(self._weights)

    def chosen(self, namespaces: Choice, selector: Selector = EVERYTHING) -> Bools:
        """Return, for each pod that takes room on a node, whether the strategy looks at both."""
        index = self.index
        chosen = index.chosen(namespaces, selector) & index.is_active & ~index.is_gone
        return chosen & (self.rows >= 0) & index.shown[self.rows]

    def together(self, kinds: Sequence[K]) -> Iterable[Sequence[K]]:
        """Return one kind after the other."""
        return ((kind,) for kind in kinds)

    def batches(self, found: Bools) -> Iterator[list[int]]:
        """Yield the pods of each node."""
        return by_row(self.rows, found)

    def passes(self, pod: int) -> bool:
        """Return whether a pod may be evicted now."""
        return self.evictor.passes(pod)

    def fits(self, pod: int) -> bool:
        """Return whether a pod fits on any node, its own included."""
        return self.evictor.fit.fits_anywhere(pod, self.index.shown)

    def has_left(self, pod: int) -> bool:
        """Return whether a pod has been evicted."""
        return bool(self.index.is_gone[pod])

    def tolerates(self, tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
        """Return whether one of these tolerates a taint; numbers are compared."""
        return tolerates(tolerations, taint)

    def matching(self, demands: Constraints) -> Bools:
        """Return the rows that meet node selector and required node affinity."""
        return self.evictor.fit.matching(demands)

    def admitting(self, demands: Constraints) -> Bools:
        """Return the rows that admit pods with such constraints; cordons and room do not count."""
        return self.evictor.fit.admitting(demands) & self.index.shown

    def conflicts(self, looked_at: Bools) -> Crowd:
        """Return the conflicts of some pods, among these pods."""
        return Crowd(self.index, looked_at)

    def _weights(self, preferences: tuple[Preference, ...]) -> Floats:
        weights: Floats = np.zeros(len(self.index.nodes))
        for weight, term in preferences:
            weights += weight * self.index.topology.meeting([term])
        return weights
