"""Required anti-affinity as upstream reads it: which pods a pod keeps away, and from where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.labels import Selector
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.pod_index import PodIndex


class AntiAffinityTerm(NamedTuple):
    """A term of required anti-affinity: which pods, and the node label that makes a domain."""

    selector: Selector
    namespaces: frozenset[str]
    topology_key: str

    def is_about(self, pod: ListedPod) -> bool:
        """Return whether a pod is one of those."""
        return pod.name.namespace in self.namespaces and self.selector.matches(pod.pod.labels)


def terms_of(pod: ListedPod) -> tuple[AntiAffinityTerm, ...]:
    """Return the terms of a pod's required anti-affinity; namespace selectors are ignored."""
    own = frozenset({pod.name.namespace})
    return tuple(
        AntiAffinityTerm(term.selector, term.namespaces or own, term.topology_key)
        for term in pod.pod.constraints.anti_affinity
    )


def terms_of_all(pods: Sequence[ListedPod]) -> list[tuple[AntiAffinityTerm, ...]]:
    """Return the terms of each pod; equal ones are mostly the same value."""
    known: dict[tuple[int, str], tuple[AntiAffinityTerm, ...]] = {}
    found: list[tuple[AntiAffinityTerm, ...]] = []
    for pod in pods:
        constraints = pod.pod.constraints
        if not constraints.anti_affinity:
            found.append(())
            continue
        key = (id(constraints), pod.name.namespace)
        found.append(known.setdefault(key, terms_of(pod)))
    return found


class Crowd:
    """Pods per topology domain that match one anti-affinity term."""

    def __init__(self, index: PodIndex, looked_at: Bools) -> None:
        """Count some pods, as things are now."""
        self._index = index
        self._looked_at = looked_at.copy()
        self._counts: dict[AntiAffinityTerm, Counter[Hashable]] = {}

    def has(self, pod: int) -> bool:
        """Return whether a term of a pod is violated; pods of its own name do not count."""
        return any(self._is_violated(term, pod) for term in terms_of(self._index.pods[pod]))

    def leave(self, pod: int) -> None:
        """Take away a pod that has gone."""
        self._looked_at[pod] = False
        for term, counts in self._counts.items():
            if term.is_about(self._index.pods[pod]):
                counts[self._domain(term, pod)] -= 1

    def _is_violated(self, term: AntiAffinityTerm, pod: int) -> bool:
        domain = self._domain(term, pod)
        index = self._index
        namesakes = sum(
            bool(self._looked_at[other])
            and term.is_about(index.pods[other])
            and self._domain(term, other) == domain
            for other in index.namesakes(pod)
        )
        return self._known(term)[domain] > namesakes

    def _known(self, term: AntiAffinityTerm) -> Counter[Hashable]:
        counts = self._counts.get(term)
        if counts is None:
            found = self._index.found(term.namespaces, term.selector)
            there = found[self._looked_at[found]]
            rows = np.bincount(self._index.rows[there], minlength=len(self._index.nodes))
            counts = self._counts[term] = Counter()
            for row in np.flatnonzero(rows):
                counts[self._of_row(term, int(row))] += int(rows[row])
        return counts

    def _domain(self, term: AntiAffinityTerm, pod: int) -> Hashable:
        return self._of_row(term, int(self._index.rows[pod]))

    def _of_row(self, term: AntiAffinityTerm, row: int) -> Hashable:
        """Return the domain of a row: the value of its label, or the node itself without it."""
        value = self._index.nodes[row].node.labels.get(term.topology_key)
        return row if value is None else value
