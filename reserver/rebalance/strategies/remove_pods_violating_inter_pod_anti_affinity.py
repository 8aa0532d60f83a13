"""RemovePodsViolatingInterPodAntiAffinity: pods beside others that they demand to be away from."""

from __future__ import annotations

from reserver.rebalance.arguments.placement import RemovePodsViolatingInterPodAntiAffinity
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState


def find(args: RemovePodsViolatingInterPodAntiAffinity, state: StrategyState) -> Batches:
    """Yield pods one by one, the least important first.

    Once one has left, what stood in conflict with it alone no longer does; so the last one of a
    group stays.
    """
    index = state.index
    looked_at = state.chosen(args.namespaces, args.label_selector)
    conflicts = state.conflicts(looked_at)
    wary = looked_at & index.constraints.where(lambda demands: bool(demands.anti_affinity))
    for batch in state.batches(wary):
        for pod in index.least_first(batch):
            if conflicts.has(pod) and state.passes(pod):
                node = index.nodes[state.rows[pod]].name
                reason = f"its anti-affinity forbids pods that are near it on {node}"
                yield [Candidate(pod, reason, "its anti-affinity is met")]
                if state.has_left(pod):
                    conflicts.leave(pod)
