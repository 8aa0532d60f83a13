"""Pods that are evicted to begin anew: too old, failed, or restarted too often."""

from __future__ import annotations

from itertools import chain

from reserver.rebalance.arguments.recycling import (
    ConditionFilter,
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.cluster_state import ContainerState, ListedCondition, ListedPod
from reserver.rebalance.strategies import StrategyState

_Args = PodLifeTime | RemoveFailedPods | RemovePodsHavingTooManyRestarts


def by_life_time(args: PodLifeTime, state: StrategyState) -> Batches:
    """PodLifeTime: yield the pods of all nodes that meet every criterion, the oldest first."""
    index = state.index
    chosen = index.chosen(args.namespaces, args.label_selector)
    found = [
        pod
        for row in index.shown_rows()
        for pod in index.on[row]
        if chosen[pod] and _is_over(args, index.pods[pod], state.now) and state.passes(pod)
    ]
    found.sort(key=lambda pod: index.pods[pod].created)
    yield [
        Candidate(
            pod, _reason(args, index.pods[pod], state.now), "a new pod replaces it", restarts=True
        )
        for pod in found
    ]


def _is_over(args: PodLifeTime, pod: ListedPod, now: float) -> bool:
    most = args.max_pod_life_time_seconds
    age = now - pod.created
    return (
        (most is None or (age >= 0 and int(age) > most))
        and (not args.states or _is_in_state(args, pod))
        and _has_owner(args, pod)
        and (not args.conditions or any(_meets(f, pod, now) for f in args.conditions))
        and _has_exit_code(args, pod)
    )


def _is_in_state(args: PodLifeTime, pod: ListedPod) -> bool:
    states = args.states
    if pod.phase in states or pod.reason in states:
        return True
    told = _states(args, pod)
    if args.including_ephemeral_containers:
        told += pod.ephemeral_containers
    return any(state.waiting in states or state.terminated in states for state in told)


def _has_owner(args: PodLifeTime, pod: ListedPod) -> bool:
    kinds = args.owner_kinds
    if kinds.include:
        return any(owner.kind in kinds.include for owner in pod.owners)
    return not any(owner.kind in kinds.exclude for owner in pod.owners)


def _meets(wanted: ConditionFilter, pod: ListedPod, now: float) -> bool:
    return any(_is(wanted, condition, now) for condition in pod.conditions)


def _is(wanted: ConditionFilter, condition: ListedCondition, now: float) -> bool:
    named = (wanted.type, wanted.status, wanted.reason)
    has = (condition.type, condition.status, condition.reason)
    if any(want and want != found for want, found in zip(named, has, strict=True)):
        return False
    if wanted.min_s is None:
        return True
    idle = -1.0 if condition.since is None else now - condition.since
    return idle >= 0 and int(idle) >= wanted.min_s


def _reason(args: PodLifeTime, pod: ListedPod, now: float) -> str:
    if args.max_pod_life_time_seconds is None:
        return "is in a state that maxPodLifeTime's criteria name"
    return f"is {int(now - pod.created)} s old, above {args.max_pod_life_time_seconds} s"


def by_failure(args: RemoveFailedPods, state: StrategyState) -> Batches:
    """RemoveFailedPods: yield the failed pods of each node."""
    index = state.index
    chosen = index.chosen(args.namespaces, args.label_selector)
    for row in index.shown_rows():
        yield [
            Candidate(
                pod,
                f"has failed: {index.pods[pod].reason or 'no reason given'}",
                "a new pod replaces it",
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
    told = ((state.waiting, state.terminated) for state in _states(args, pod))
    has_reason = any(reason and reason in args.reasons for reason in chain([pod.reason], *told))
    return (not args.reasons or has_reason) and _has_exit_code(args, pod)


def by_restarts(args: RemovePodsHavingTooManyRestarts, state: StrategyState) -> Batches:
    """RemovePodsHavingTooManyRestarts: yield the pods of each node, the most restarts first."""
    index = state.index
    chosen = index.chosen(args.namespaces, args.label_selector)
    for row in index.shown_rows():
        restarts = {
            pod: count
            for pod in index.on[row]
            if (count := _restarts(args, index.pods[pod])) >= args.pod_restart_threshold
            and chosen[pod]
            and not _tolerates(args, index.pods[pod])
            and state.passes(pod)
        }
        worst_first = sorted(restarts, key=lambda pod: -restarts[pod])
        yield [
            Candidate(
                pod, f"has restarted {restarts[pod]} times", "a new pod replaces it", restarts=True
            )
            for pod in worst_first
        ]


def _restarts(args: RemovePodsHavingTooManyRestarts, pod: ListedPod) -> int:
    return sum([state.restarts for state in _states(args, pod)])


def _tolerates(args: RemovePodsHavingTooManyRestarts, pod: ListedPod) -> bool:
    wanted = args.states
    if not wanted or pod.phase in wanted:
        return False
    return all(state.waiting not in wanted for state in _states(args, pod))


def _states(args: _Args, pod: ListedPod) -> tuple[ContainerState, ...]:
    """Return the states of the containers that a strategy looks at."""
    init = pod.init_containers if args.including_init_containers else ()
    return pod.containers + init


def _has_exit_code(args: PodLifeTime | RemoveFailedPods, pod: ListedPod) -> bool:
    """Return whether a container ended with one of the exit codes, or none is written."""
    codes = args.exit_codes
    return not codes or any(state.exit_code in codes for state in _states(args, pod))
