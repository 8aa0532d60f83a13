"""Judges a policy as one plan instead of pod by pod, the default (docs/adr/0031).

Upstream asks for each pod by itself whether it fits on any other node, and leaves the rest to
kube-scheduler. Here each move has a node that has room for it by all of `fit`, what reservations
hold aside, once all moves before it are made. It goes where its strategy would not move it again.
Budgets and limits are spent within the plan, and ties are broken by names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.labels import Selector
from reserver.errors import sparing
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.arguments.recycling import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.capacity import NOTHING_HELD, Held, snapshot_of
from reserver.rebalance.cluster_state import ListedPod, Preference
from reserver.rebalance.evictor import Filter
from reserver.rebalance.exchanges import Exchanges, stay
from reserver.rebalance.limits import Disruptions
from reserver.rebalance.measured_load import MeasuredLoad, measured_load_of
from reserver.rebalance.move_cost import cost, with_costs
from reserver.rebalance.plan import Plan
from reserver.rebalance.plan_builder import Floats, PlanBuilder
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.plan_summary import node_uses
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.pod_index import Once, PodIndex
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, Profile
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.strategies.table import PLAN

_ABOUT_NODES = (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
"""Strategies that no pod meets by going to a node that it tolerates, and prefers no less."""


def decide(given: RoundInput, held: Held = NOTHING_HELD) -> Decision:
    """Return the plan for a policy, and the state for the next round.

    Args:
        given: the policy and the cluster. Without loads, the usage in the cluster counts.
        held: resources that reservations hold, by node.
    """
    load = measured_load_of(given.cluster, given.policy, given.now)
    load = replace(load, before=given.rounds, loads=given.loads or load.loads)
    costs = partial(cost, now=given.now)
    index = PodIndex(given.cluster, given.policy.node_selector, costs)
    plan = _planned(given, index, held, load)
    return Decision(plan=with_costs(plan, given.cluster, given.now), rounds=load.after)


def _planned(given: RoundInput, index: PodIndex, held: Held, load: MeasuredLoad) -> Plan:
    policy = given.policy
    pods = [each.pod for each in index.pods]
    snapshot = snapshot_of(index.cluster, held)
    planned = PlanningSnapshot(snapshot, pods, Disruptions(index.cluster.budgets))
    builder = PlanBuilder(planned, index, policy.limits)
    exchanges = Exchanges(builder)
    turns = [(profile, args) for profile in policy.profiles for args in profile.deschedule]
    turns += [(profile, args) for profile in policy.profiles for args in profile.balance]
    is_about_nodes = all(isinstance(args, _ABOUT_NODES) for _, args in turns)
    common = _Common(
        builder=builder,
        load=load,
        ready=Once(partial(_ready, builder)),
        weights=Once(partial(_weights, planned)),
        prefers=any(_is_about_preferences(args) for _, args in turns),
        least_gain=given.least_gain,
    )
    protects = {each.name: Filter(each.evictor, index, load.now).why for each in policy.profiles}
    for profile, args in turns:
        with given.timed(profile.name, args.NAME), sparing(partial(_failed, builder, args.NAME)):
            state = _state(common, policy, profile, args, protects[profile.name])
            for batch in PLAN[type(args)](args, state):
                for candidate in batch:
                    state.move(candidate)
            exchanges.resolve(state.may_step_aside if is_about_nodes else stay)
    kept, more_kept = builder.kept()
    return Plan(
        moves=tuple(builder.moves),
        kept=kept,
        more_kept=more_kept,
        nodes=node_uses(planned),
        notes=tuple(builder.notes),
    )


def protection(given: RoundInput, profile: Profile) -> Callable[[ListedPod], str]:
    """Return what protects pods from a profile's evictor; where they fit is not its business."""
    index = PodIndex(given.cluster, given.policy.node_selector)
    numbers = {pod.pod.uid: number for number, pod in enumerate(index.pods)}
    evictor = Filter(profile.evictor, index, given.now)
    return lambda each: evictor.why(numbers[each.pod.uid])


class _Common(NamedTuple):
    """The inputs that all strategies share."""

    builder: PlanBuilder
    load: MeasuredLoad
    ready: Once[Selector, Bools]
    weights: Once[tuple[Preference, ...], Floats]
    prefers: bool
    least_gain: float


def _state(
    common: _Common,
    policy: DeschedulerPolicy,
    profile: Profile,
    args: Arguments,
    protects: Callable[[int], str],
) -> PlanState:
    return PlanState(
        builder=common.builder,
        profile=profile.name,
        strategy=args.NAME,
        protects=protects,
        looked_at=common.ready(policy.node_selector),
        offered=common.ready(profile.evictor.node_selector),
        load=common.load,
        weights=common.weights,
        keeps_preferences=common.prefers and args in profile.balance,
        least_gain=common.least_gain,
    )


def _weights(planned: PlanningSnapshot, preferences: tuple[Preference, ...]) -> Floats:
    """Return, for each row, how much of preferred node affinities it meets."""
    weights = np.zeros(len(planned.closed))
    for preference in preferences:
        weights += preference.weight * planned.snapshot.topology.meeting([preference.term])
    return weights


def _is_about_preferences(args: Arguments) -> bool:
    if not isinstance(args, RemovePodsViolatingNodeAffinity):
        return False
    return NodeAffinityType.PREFERRED in args.types


def _failed(builder: PlanBuilder, strategy: str, exc: Exception) -> None:
    builder.notes.append(f"{strategy} failed: {exc}")


def _ready(builder: PlanBuilder, selector: Selector) -> Bools:
    """Return, for each row, whether its node is ready and a selector matches it."""
    snapshot = builder.planned.snapshot
    ready = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for name, node in builder.index.cluster.nodes.items():
        row = snapshot.row(name)
        if row is not None:
            ready[row] = node.is_ready and selector.matches(node.node.labels)
    return ready
