"""RemovePodsViolatingNodeAffinity: nodes that no longer meet a pod's affinity, or meet it less."""

from __future__ import annotations

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.arguments.placement import NodeAffinityType, RemovePodsViolatingNodeAffinity
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState


def find(args: RemovePodsViolatingNodeAffinity, state: StrategyState) -> Batches:
    """Yield the pods that fit somewhere and ought to be elsewhere."""
    index = state.index
    for kinds in state.together(args.types):
        chosen = state.chosen(args.namespaces, args.label_selector)
        nobody = np.zeros_like(chosen)
        misplaced = _misplaced(chosen, state) if NodeAffinityType.REQUIRED in kinds else nobody
        unhappy = _unhappy(chosen, state) if NodeAffinityType.PREFERRED in kinds else nobody
        for batch in state.batches(misplaced | unhappy):
            yield [
                _violating(pod, index) if misplaced[pod] else _preferring(pod, state)
                for pod in batch
                if state.passes(pod) and state.fits(pod)
            ]


def _misplaced(chosen: Bools, state: StrategyState) -> Bools:
    """Return which of some pods are on nodes that do not meet their required node affinity."""
    constraints = state.index.constraints
    found = chosen & constraints.where(lambda demands: demands.node_terms is not None)
    for demands, pods in constraints.groups(np.flatnonzero(found)):
        found[pods] = ~state.matching(demands)[state.rows[pods]]
    return found


def _unhappy(chosen: Bools, state: StrategyState) -> Bools:
    """Return which of some pods other nodes suit better, by their preferences."""
    preferences = state.index.preferences
    found = chosen & preferences.where(bool)
    for preferred, pods in preferences.groups(np.flatnonzero(found)):
        weights = state.weights(preferred)
        found[pods] = weights[state.rows[pods]] < weights[state.offered].max(initial=0)
    return found


def _violating(pod: int, index: PodIndex) -> Candidate:
    reason = f"{index.pods[pod].node} does not meet its required node affinity"
    return Candidate(pod, reason, "its node affinity is met", waits=True)


def _preferring(pod: int, state: StrategyState) -> Candidate:
    listed = state.index.pods[pod]
    weights = state.weights(listed.preferences)
    return Candidate(
        pod,
        f"other nodes meet its preferred node affinity better than {listed.node}",
        "its node affinity is met better",
        weights > weights[state.rows[pod]],
        -weights,
        waits=True,
    )
