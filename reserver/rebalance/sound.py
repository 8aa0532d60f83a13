"""The default way of judging a policy: as one plan, not pod by pod (docs/adr/0031).

Upstream asks for each pod by itself whether it fits on any other node, and leaves the rest to
kube-scheduler. Here each move has a node that has room for it by all of `fit`, what reservations
hold aside, once all moves before it are made. It goes where its strategy would not move it again.
Budgets and limits are spent within the plan, and ties are broken by names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reserver.cluster.columns import Bools
from reserver.rebalance import arguments
from reserver.rebalance.arguments import Arguments
from reserver.rebalance.inventory import Inventory, ListedPod
from reserver.rebalance.judges.cycle import Cycle, Protects
from reserver.rebalance.judges.duplicates import duplicates
from reserver.rebalance.judges.load import low_node_load
from reserver.rebalance.judges.placement import anti_affinity, node_affinity, node_taints
from reserver.rebalance.judges.spread import spread_constraints
from reserver.rebalance.judges.utilization import high_node_utilization, low_node_utilization
from reserver.rebalance.ordering import Order
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import Policy, Profile
from reserver.rebalance.real import RealLoad, real_of
from reserver.rebalance.scene import NOTHING_HELD, Held, plan_of, scene_of
from reserver.rebalance.stage import Stage

Evictors = Callable[[Profile], Protects]
"""Returns, for a profile, what protects a pod from its evictor."""

Judge = Callable[[Cycle, Any], None]

JUDGES: Mapping[type[Arguments], Judge] = {
    arguments.RemoveDuplicates: duplicates,
    arguments.LowNodeLoad: low_node_load,
    arguments.LowNodeUtilization: low_node_utilization,
    arguments.HighNodeUtilization: high_node_utilization,
    arguments.RemovePodsViolatingInterPodAntiAffinity: anti_affinity,
    arguments.RemovePodsViolatingNodeAffinity: node_affinity,
    arguments.RemovePodsViolatingNodeTaints: node_taints,
    arguments.RemovePodsViolatingTopologySpreadConstraint: spread_constraints,
}


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
        real: what is known of real load; None for what the inventory has.
    """
    real = real or real_of(inventory, policy, 0.0)
    scene = scene_of(inventory, lambda _: "", held=held)
    stage = Stage(scene, inventory, policy.limits)
    seen = _seen(policy, stage)
    turns = [(profile, args) for profile in policy.profiles for args in profile.deschedule]
    turns += [(profile, args) for profile in policy.profiles for args in profile.balance]
    protects = {profile.name: evictors(profile) for profile in policy.profiles}
    for profile, args in turns:
        judge = JUDGES.get(type(args))
        if judge is None:
            stage.notes.append(f"{args.NAME} is not judged in this plan")
            continue
        cycle = Cycle(
            stage=stage,
            profile=profile.name,
            strategy=args.NAME,
            protects=protects[profile.name],
            seen=seen,
            offered=_offered(profile, stage),
            real=real,
        )
        judge(cycle, args)
        stage.swap_what_waits()
    whys = iter(stage.whys)
    return plan_of(
        scene,
        Order(tuple(stage.steps), {}),
        lambda _, __: next(whys),
        kept=sorted(stage.kept.values(), key=lambda kept: kept.pod),
        notes=stage.notes,
    )


def _seen(policy: Policy, stage: Stage) -> Bools:
    """Return, for each row, whether strategies look at its node: it is ready, and selected."""
    snapshot = stage.scene.board.snapshot
    seen = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for name, node in stage.inventory.nodes.items():
        row = snapshot.row(name)
        if row is not None:
            seen[row] = node.is_ready and policy.node_selector.matches(node.node.labels)
    return seen


def _offered(profile: Profile, stage: Stage) -> Bools:
    """Return, for each row, whether pods may be sent there: it is ready, and the evictor's."""
    snapshot = stage.scene.board.snapshot
    offered = np.zeros(len(snapshot.exists), dtype=np.bool_)
    selector = profile.evictor.node_selector
    for name, node in stage.inventory.nodes.items():
        row = snapshot.row(name)
        if row is not None:
            offered[row] = node.is_ready and selector.matches(node.node.labels)
    return offered


def nothing_protects(_: ListedPod) -> str:
    """Protect no pod."""
    return ""
