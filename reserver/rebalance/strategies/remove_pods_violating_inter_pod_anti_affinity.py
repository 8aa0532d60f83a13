"""RemovePodsViolatingInterPodAntiAffinity: pods beside others that they demand to be away from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from reserver.cluster.columns import Bools
from reserver.rebalance.anti_affinity import AntiAffinityTerm, terms_of
from reserver.rebalance.arguments.placement import RemovePodsViolatingInterPodAntiAffinity
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Candidate, Judge, least_first


def find(
    args: RemovePodsViolatingInterPodAntiAffinity,
    view: PodIndex,
    judge: Judge,
    now: float,  # noqa: ARG001 - all strategies alike
) -> Batches:
    """Yield pods one by one, the least important of each node first.

    Once one has gone, what stood in conflict with it alone no longer does; so the last one of a
    group stays.
    """
    looked_at = view.chosen(args.namespaces, args.label_selector) & view.is_active
    looked_at[view.rows >= 0] &= view.shown[view.rows[view.rows >= 0]]
    crowd = _Crowd(view, looked_at)
    for row in view.shown_rows():
        wary = [
            pod
            for pod in view.on[row]
            if looked_at[pod] and view.pods[pod].pod.constraints.anti_affinity
        ]
        for pod in least_first(view, wary):
            term = crowd.conflict(pod)
            if term and judge.passes(pod):
                yield [Candidate(pod, f"another pod is in the same {term.topology_key}")]
                if view.is_gone[pod]:
                    crowd.leave(pod)


class _Crowd:
    """How many of the pods that a term is about stand in each domain."""

    def __init__(self, view: PodIndex, looked_at: Bools) -> None:
        self._view = view
        self._looked_at = looked_at & ~view.is_gone & (view.rows >= 0)
        self._counts: dict[AntiAffinityTerm, Counter[Hashable]] = {}

    def conflict(self, pod: int) -> AntiAffinityTerm | None:
        """Return the first term of a pod that is violated; pods of its own name do not count."""
        return next((term for term in terms_of(self._view.pods[pod]) if self._has(term, pod)), None)

    def leave(self, pod: int) -> None:
        """Take away a pod that has gone."""
        self._looked_at[pod] = False
        for term, counts in self._counts.items():
            if term.is_about(self._view.pods[pod]):
                counts[self._domain(term, pod)] -= 1

    def _has(self, term: AntiAffinityTerm, pod: int) -> bool:
        domain = self._domain(term, pod)
        view = self._view
        namesakes = sum(
            bool(self._looked_at[other])
            and term.is_about(view.pods[other])
            and self._domain(term, other) == domain
            for other in view.namesakes(pod)
        )
        return self._known(term)[domain] > namesakes

    def _known(self, term: AntiAffinityTerm) -> Counter[Hashable]:
        counts = self._counts.get(term)
        if counts is None:
            found = self._view.found(term.namespaces, term.selector)
            there = found[self._looked_at[found]]
            rows = np.bincount(self._view.rows[there], minlength=len(self._view.nodes))
            counts = self._counts[term] = Counter()
            for row in np.flatnonzero(rows):
                counts[self._of_row(term, int(row))] += int(rows[row])
        return counts

    def _domain(self, term: AntiAffinityTerm, pod: int) -> Hashable:
        return self._of_row(term, int(self._view.rows[pod]))

    def _of_row(self, term: AntiAffinityTerm, row: int) -> Hashable:
        """Return the domain of a row: the value of its label, or the node itself without it."""
        value = self._view.nodes[row].node.labels.get(term.topology_key)
        return row if value is None else value
