"""RemoveFailedPods: pods in phase Failed."""

from __future__ import annotations

from itertools import chain

from reserver.rebalance.arguments.recycling import RemoveFailedPods
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState


def find(args: RemoveFailedPods, state: StrategyState) -> Batches:
    """Yield the failed pods of each node."""
    index = state.index
    chosen = index.chosen(args.namespaces, args.label_selector)
    for row in index.shown_rows():
        yield [
            Candidate(
                pod,
                f"has failed: {index.pods[pod].reason or 'no reason given'}",
                "it begins anew",
                restarts=True,
            )
            for pod in index.on[row]
            if index.pods[pod].phase == "Failed"
            and chosen[pod]
            and _is_old_enough(args, index.pods[pod], state.now)
            and _failed_so(args, index.pods[pod])
            and state.passes(pod)
        ]


def _is_old_enough(args: RemoveFailedPods, pod: ListedPod, now: float) -> bool:
    age = now - pod.created
    return age < 0 or int(age) >= args.min_pod_lifetime_seconds  # Go's uint of -1 s is enormous.


def _failed_so(args: RemoveFailedPods, pod: ListedPod) -> bool:
    if any(owner.kind in args.exclude_owner_kinds for owner in pod.owners):
        return False
    states = (*pod.containers, *(pod.init_containers if args.including_init_containers else ()))
    reasons = chain([pod.reason], *((state.waiting, state.terminated) for state in states))
    return (not args.reasons or any(reason and reason in args.reasons for reason in reasons)) and (
        not args.exit_codes or any(state.exit_code in args.exit_codes for state in states)
    )
