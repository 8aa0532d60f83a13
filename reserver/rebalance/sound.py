"""The default way of judging a policy: as one plan, not pod by pod (docs/adr/0031).

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
from reserver.rebalance import arguments
from reserver.rebalance.arguments import Arguments, NodeAffinityType
from reserver.rebalance.deciding import Decision, Look, Timed, untimed
from reserver.rebalance.evictor import Evictor, Protections
from reserver.rebalance.inventory import Inventory, ListedPod, Preference
from reserver.rebalance.judges.cycle import Cycle, Protects, Sight
from reserver.rebalance.judges.duplicates import duplicates
from reserver.rebalance.judges.load import low_node_load
from reserver.rebalance.judges.placement import anti_affinity, node_affinity, node_taints
from reserver.rebalance.judges.recycling import recycled
from reserver.rebalance.judges.spread import spread_constraints
from reserver.rebalance.judges.utilization import high_node_utilization, low_node_utilization
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.plan import MOST_KEPT, Plan
from reserver.rebalance.policy import Policy, Profile
from reserver.rebalance.real import RealLoad, real_of
from reserver.rebalance.scene import NOTHING_HELD, Held, node_uses, scene_of
from reserver.rebalance.stage import Floats, Stage
from reserver.rebalance.strategies import (
    pod_life_time,
    remove_failed_pods,
    remove_pods_having_too_many_restarts,
)
from reserver.rebalance.view import View

Evictors = Callable[[Profile], Protects]
"""Returns, for a profile, what protects a pod from its evictor."""

JUDGES: Mapping[type[Arguments], Callable[[Cycle, Any], None]] = {
    arguments.RemoveDuplicates: duplicates,
    arguments.LowNodeLoad: low_node_load,
    arguments.LowNodeUtilization: low_node_utilization,
    arguments.HighNodeUtilization: high_node_utilization,
    arguments.RemovePodsViolatingInterPodAntiAffinity: anti_affinity,
    arguments.RemovePodsViolatingNodeAffinity: node_affinity,
    arguments.RemovePodsViolatingNodeTaints: node_taints,
    arguments.RemovePodsViolatingTopologySpreadConstraint: spread_constraints,
    arguments.RemovePodsHavingTooManyRestarts: recycled(remove_pods_having_too_many_restarts.find),
    arguments.PodLifeTime: recycled(pod_life_time.find),
    arguments.RemoveFailedPods: recycled(remove_failed_pods.find),
}


def decide(look: Look, held: Held = NOTHING_HELD) -> Decision:
    """Return the plan that a policy asks for, and what the next round is to know.

    Args:
        look: the policy and the cluster. Without loads, what the inventory says of load counts.
        held: what reservations hold, by node.
    """
    real = real_of(look.inventory, look.policy, look.now)
    real = replace(real, before=look.rounds, loads=look.loads or real.loads)
    sight = _sight(look.inventory, look.policy)
    plan = _sound(look.policy, sight, evictors(sight, look.now), held, real, look.timed)
    return Decision(plan=plan, rounds=real.after)


def sound(
    policy: Policy,
    inventory: Inventory,
    evictors: Evictors,
    held: Held = NOTHING_HELD,
    real: RealLoad | None = None,
) -> Plan:
    """Return the plan that a policy asks for.

    Args:
        policy: what to do.
        inventory: the cluster.
        evictors: what protects pods.
        held: what reservations hold, by node.
        real: what is known of real load, and the time; None for what the inventory has.
    """
    real = real or real_of(inventory, policy, 0.0)
    return _sound(policy, _sight(inventory, policy), evictors, held, real)


def _sound(
    policy: Policy,
    sight: Sight,
    evictors: Evictors,
    held: Held,
    real: RealLoad,
    timed: Timed = untimed,
) -> Plan:
    inventory = sight.view.inventory
    scene = scene_of(inventory, lambda _: "", held=held)
    stage = Stage(scene, inventory, policy.limits)
    turns = [(profile, args) for profile in policy.profiles for args in profile.deschedule]
    turns += [(profile, args) for profile in policy.profiles for args in profile.balance]
    common = _Common(
        stage=stage,
        sight=sight,
        real=real,
        seen=_ready(stage, policy.node_selector),
        weights={},
        prefers=any(_is_about_preferences(args) for _, args in turns),
    )
    protects = {profile.name: evictors(profile) for profile in policy.profiles}
    for profile, args in turns:
        with timed(profile.name, args.NAME), sparing(partial(_failed, stage, args.NAME)):
            JUDGES[type(args)](_cycle(common, profile, args, protects[profile.name]), args)
        stage.swap_what_waits()
    kept = sorted(stage.kept.values(), key=lambda kept: kept.pod)
    return Plan(
        moves=tuple(stage.moves),
        kept=tuple(kept[:MOST_KEPT]),
        more_kept=max(0, len(kept) - MOST_KEPT),
        nodes=node_uses(scene.board, scene.before),
        notes=tuple(stage.notes),
    )


def evictors(sight: Sight, now: float) -> Evictors:
    """Return what protects pods by a policy; where pods fit is asked of the board instead."""
    index = {pod.pod.uid: number for number, pod in enumerate(sight.view.pods)}

    def of(profile: Profile) -> Protects:
        args = replace(profile.evictor, node_fit=False)
        evictor = Evictor(args, sight.view, sight.fit, now)
        always = Protections(args, sight.view.inventory, now)

        def protects(each: ListedPod) -> str:
            number = index[each.pod.uid]
            if not evictor.allows(number):
                return always.why(each) or "its owner has fewer pods than minReplicas"
            return "" if evictor.confirms(number) else "the namespaceLabelSelector leaves it out"

        return protects

    return of


def protection(look: Look, profile: Profile) -> Protects:
    """Return what protects pods from a profile's evictor."""
    return evictors(_sight(look.inventory, look.policy), look.now)(profile)


class _Common(NamedTuple):
    """What is the same for all strategies."""

    stage: Stage
    sight: Sight
    real: RealLoad
    seen: Bools
    weights: dict[tuple[Preference, ...], Floats]
    prefers: bool


def _cycle(common: _Common, profile: Profile, args: Arguments, protects: Protects) -> Cycle:
    return Cycle(
        stage=common.stage,
        profile=profile.name,
        strategy=args.NAME,
        protects=protects,
        sight=common.sight,
        seen=common.seen,
        offered=_ready(common.stage, profile.evictor.node_selector),
        real=common.real,
        weights=common.weights,
        keeps_preferences=common.prefers and args in profile.balance,
    )


def _is_about_preferences(args: Arguments) -> bool:
    if not isinstance(args, arguments.RemovePodsViolatingNodeAffinity):
        return False
    return NodeAffinityType.PREFERRED in args.types


def _sight(inventory: Inventory, policy: Policy) -> Sight:
    view = View(inventory, policy.node_selector)
    return Sight(view, NodeFit(view))


def _failed(stage: Stage, strategy: str, exc: Exception) -> None:
    stage.notes.append(f"{strategy} failed: {exc}")


def _ready(stage: Stage, selector: Selector) -> Bools:
    """Return, for each row, whether its node is ready and a selector matches it."""
    snapshot = stage.scene.board.snapshot
    ready = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for name, node in stage.inventory.nodes.items():
        row = snapshot.row(name)
        if row is not None:
            ready[row] = node.is_ready and selector.matches(node.node.labels)
    return ready
