"""PodLifeTime: pods that are too old, or in some state for too long."""

from __future__ import annotations

from itertools import chain

from reserver.rebalance.arguments.recycling import ConditionFilter, PodLifeTime
from reserver.rebalance.cluster_state import ListedCondition, ListedPod
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState


def find(args: PodLifeTime, state: StrategyState) -> Batches:
    """Yield the pods of all nodes that meet every criterion, the oldest first."""
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
        Candidate(pod, _reason(args, index.pods[pod], state.now), "it begins anew", restarts=True)
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
        and (not args.exit_codes or _has_exit_code(args, pod))
    )


def _is_in_state(args: PodLifeTime, pod: ListedPod) -> bool:
    states = args.states
    if pod.phase in states or pod.reason in states:
        return True
    told = pod.containers
    if args.including_init_containers:
        told += pod.init_containers
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


def _has_exit_code(args: PodLifeTime, pod: ListedPod) -> bool:
    init = pod.init_containers if args.including_init_containers else ()
    return any(state.exit_code in args.exit_codes for state in chain(pod.containers, init))


def _reason(args: PodLifeTime, pod: ListedPod, now: float) -> str:
    if args.max_pod_life_time_seconds is None:
        return "is in a state that maxPodLifeTime's criteria name"
    return f"is {int(now - pod.created)} s old, above {args.max_pod_life_time_seconds} s"
