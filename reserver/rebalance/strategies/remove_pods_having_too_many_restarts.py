"""RemovePodsHavingTooManyRestarts: pods whose containers have restarted too often."""

from __future__ import annotations

from reserver.rebalance.arguments.recycling import RemovePodsHavingTooManyRestarts
from reserver.rebalance.cluster_state import ContainerState, ListedPod
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState


def find(args: RemovePodsHavingTooManyRestarts, state: StrategyState) -> Batches:
    """Yield the pods of each node, those with the most restarts first."""
    index = state.index
    chosen = index.chosen(args.namespaces, args.label_selector)
    for row in index.shown_rows():
        restarts = {
            pod: count
            for pod in index.on[row]
            if (count := _restarts(args, index.pods[pod])) >= args.pod_restart_threshold
            and chosen[pod]
            and _is_in_state(args, index.pods[pod])
            and state.passes(pod)
        }
        worst_first = sorted(restarts, key=lambda pod: -restarts[pod])
        yield [
            Candidate(pod, f"has restarted {restarts[pod]} times", "it begins anew", restarts=True)
            for pod in worst_first
        ]


def _states(args: RemovePodsHavingTooManyRestarts, pod: ListedPod) -> tuple[ContainerState, ...]:
    return (
        pod.containers + pod.init_containers if args.including_init_containers else pod.containers
    )


def _restarts(args: RemovePodsHavingTooManyRestarts, pod: ListedPod) -> int:
    return sum([state.restarts for state in _states(args, pod)])


def _is_in_state(args: RemovePodsHavingTooManyRestarts, pod: ListedPod) -> bool:
    wanted = args.states
    if not wanted or pod.phase in wanted:
        return True
    return any(state.waiting in wanted for state in _states(args, pod))
