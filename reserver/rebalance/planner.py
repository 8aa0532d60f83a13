"""Judges a policy as one plan instead of pod by pod, the default (docs/adr/0031).

Upstream asks for each pod by itself whether it fits on any other node, and leaves the rest to
kube-scheduler. Here each move has a node that has room for it by all of `fit`, what reservations
hold aside, once all moves before it are made. It goes where its strategy would not move it again.
Budgets and limits are spent within the plan, and ties are broken by names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.labels import Selector
from reserver.errors import sparing
from reserver.rebalance.arguments import load, placement, recycling, utilization
from reserver.rebalance.arguments.placement import NodeAffinityType
from reserver.rebalance.capacity import NOTHING_HELD, Held
from reserver.rebalance.cluster_state import Preference
from reserver.rebalance.evictor import Filter
from reserver.rebalance.judges.cycle import Cycle, Protects
from reserver.rebalance.judges.duplicates import duplicates
from reserver.rebalance.judges.load import low_node_load
from reserver.rebalance.judges.placement import anti_affinity, node_affinity, node_taints
from reserver.rebalance.judges.recycling import recycled
from reserver.rebalance.judges.spread import spread_constraints
from reserver.rebalance.judges.utilization import high_node_utilization, low_node_utilization
from reserver.rebalance.measured_load import MeasuredLoad, measured_load_of
from reserver.rebalance.plan import Plan
from reserver.rebalance.plan_builder import Floats, PlanBuilder
from reserver.rebalance.plan_summary import node_uses
from reserver.rebalance.planning_snapshot import PlanningSnapshot, planning_snapshot
from reserver.rebalance.pod_index import Once, PodIndex
from reserver.rebalance.policy import Arguments, Policy, Profile
from reserver.rebalance.round_input import Decision, RoundInput, Timed
from reserver.rebalance.strategies import (
    pod_life_time,
    remove_failed_pods,
    remove_pods_having_too_many_restarts,
)
from reserver.rebalance.swaps import Swaps

JUDGES: Mapping[type[Arguments], Callable[[Cycle, Any], None]] = {
    placement.RemoveDuplicates: duplicates,
    load.LowNodeLoad: low_node_load,
    utilization.LowNodeUtilization: low_node_utilization,
    utilization.HighNodeUtilization: high_node_utilization,
    placement.RemovePodsViolatingInterPodAntiAffinity: anti_affinity,
    placement.RemovePodsViolatingNodeAffinity: node_affinity,
    placement.RemovePodsViolatingNodeTaints: node_taints,
    placement.RemovePodsViolatingTopologySpreadConstraint: spread_constraints,
    recycling.RemovePodsHavingTooManyRestarts: recycled(remove_pods_having_too_many_restarts.find),
    recycling.PodLifeTime: recycled(pod_life_time.find),
    recycling.RemoveFailedPods: recycled(remove_failed_pods.find),
}


def decide(given: RoundInput, held: Held = NOTHING_HELD) -> Decision:
    """Return the plan that a policy asks for, and what the next round is to know.

    Args:
        given: the policy and the cluster. Without loads, what the cluster says of load counts.
        held: what reservations hold, by node.
    """
    real = measured_load_of(given.cluster, given.policy, given.now)
    real = replace(real, before=given.rounds, loads=given.loads or real.loads)
    plan = _planned(
        given.policy, PodIndex(given.cluster, given.policy.node_selector), held, real, given.timed
    )
    return Decision(plan=plan, rounds=real.after)


def _planned(policy: Policy, view: PodIndex, held: Held, real: MeasuredLoad, timed: Timed) -> Plan:
    planned = planning_snapshot(view.cluster, lambda _: "", held=held)
    stage = PlanBuilder(planned, view, policy.limits)
    swaps = Swaps(stage)
    turns = [(profile, args) for profile in policy.profiles for args in profile.deschedule]
    turns += [(profile, args) for profile in policy.profiles for args in profile.balance]
    ready = Once(partial(_ready, stage))
    common = _Common(
        stage=stage,
        real=real,
        ready=ready,
        seen=ready(policy.node_selector),
        met=Once(partial(_met, planned)),
        prefers=any(_is_about_preferences(args) for _, args in turns),
    )
    protects = {each.name: _protects(view, each, real.now) for each in policy.profiles}
    for profile, args in turns:
        with timed(profile.name, args.NAME), sparing(partial(_failed, stage, args.NAME)):
            JUDGES[type(args)](_cycle(common, profile, args, protects[profile.name]), args)
        swaps.swap()
    kept, more_kept = stage.kept()
    return Plan(
        moves=tuple(stage.moves),
        kept=kept,
        more_kept=more_kept,
        nodes=node_uses(planned),
        notes=tuple(stage.notes),
    )


def protection(given: RoundInput, profile: Profile) -> Protects:
    """Return what protects pods from a profile's evictor; where they fit is not its business."""
    return _protects(PodIndex(given.cluster, given.policy.node_selector), profile, given.now)


def _protects(view: PodIndex, profile: Profile, now: float) -> Protects:
    index = {pod.pod.uid: number for number, pod in enumerate(view.pods)}
    evictor = Filter(profile.evictor, view, now)
    return lambda each: evictor.why(index[each.pod.uid])


class _Common(NamedTuple):
    """What is the same for all strategies."""

    stage: PlanBuilder
    real: MeasuredLoad
    ready: Once[Selector, Bools]
    seen: Bools
    met: Once[tuple[Preference, ...], Floats]
    prefers: bool


def _cycle(common: _Common, profile: Profile, args: Arguments, protects: Protects) -> Cycle:
    return Cycle(
        stage=common.stage,
        profile=profile.name,
        strategy=args.NAME,
        protects=protects,
        seen=common.seen,
        offered=common.ready(profile.evictor.node_selector),
        real=common.real,
        met=common.met,
        keeps_preferences=common.prefers and args in profile.balance,
    )


def _met(planned: PlanningSnapshot, preferences: tuple[Preference, ...]) -> Floats:
    """Return, for each row, how much of preferred node affinities it meets."""
    weights = np.zeros(len(planned.closed))
    for preference in preferences:
        weights += preference.weight * planned.snapshot.topology.meeting([preference.term])
    return weights


def _is_about_preferences(args: Arguments) -> bool:
    if not isinstance(args, placement.RemovePodsViolatingNodeAffinity):
        return False
    return NodeAffinityType.PREFERRED in args.types


def _failed(stage: PlanBuilder, strategy: str, exc: Exception) -> None:
    stage.notes.append(f"{strategy} failed: {exc}")


def _ready(stage: PlanBuilder, selector: Selector) -> Bools:
    """Return, for each row, whether its node is ready and a selector matches it."""
    snapshot = stage.planned.snapshot
    ready = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for name, node in stage.view.cluster.nodes.items():
        row = snapshot.row(name)
        if row is not None:
            ready[row] = node.is_ready and selector.matches(node.node.labels)
    return ready
