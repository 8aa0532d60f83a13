"""RemovePodsViolatingNodeAffinity: nodes that no longer meet a pod's affinity, or meet it less."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.columns import Bools
from reserver.rebalance.arguments.placement import NodeAffinityType, RemovePodsViolatingNodeAffinity
from reserver.rebalance.cluster_state import Preference
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Candidate, Judge

_REQUIRED = "the node does not meet its required node affinity"
_PREFERRED = "another node meets its preferred node affinity better"


def find(
    args: RemovePodsViolatingNodeAffinity,
    view: PodIndex,
    judge: Judge,
    now: float,  # noqa: ARG001 - all strategies alike
) -> Batches:
    """Yield the pods of each node that fit somewhere and ought to be elsewhere."""
    chosen = view.chosen(args.namespaces, args.label_selector)
    for kind in args.types:
        search = _violating if kind is NodeAffinityType.REQUIRED else _unhappy
        yield from search(view, judge, chosen)


def _violating(view: PodIndex, judge: Judge, chosen: Bools) -> Batches:
    for row in view.shown_rows():
        yield [
            Candidate(pod, _REQUIRED)
            for pod in view.listed(row)
            if view.pods[pod].pod.constraints.node_terms is not None
            and chosen[pod]
            and not judge.fit.matching(pod)[row]
            and judge.passes(pod)
            and judge.fit.fits_anywhere(pod, view.shown)
        ]


def _unhappy(view: PodIndex, judge: Judge, chosen: Bools) -> Batches:
    known: dict[tuple[Preference, ...], NDArray[np.int64]] = {}
    for row in view.shown_rows():
        found = []
        for pod in view.listed(row):
            preferences = view.pods[pod].preferences
            if not preferences or not chosen[pod]:
                continue
            weights = known.get(preferences)
            if weights is None:
                weights = known[preferences] = _weights(view, preferences)
            best = int(weights[view.shown].max(initial=0))
            if best <= weights[row] or not judge.passes(pod):
                continue
            if judge.fit.fits_anywhere(pod, view.shown):
                found.append(Candidate(pod, _PREFERRED))
        yield found


def _weights(view: PodIndex, preferences: tuple[Preference, ...]) -> NDArray[np.int64]:
    weights = np.zeros(len(view.nodes), dtype=np.int64)
    for weight, term in preferences:
        weights += weight * view.topology.meeting([term])
    return weights
