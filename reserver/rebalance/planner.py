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
from reserver.rebalance.measured_load import Rounds, dumped_loads
from reserver.rebalance.move_cost import cost, with_costs
from reserver.rebalance.plan import Plan
from reserver.rebalance.plan_builder import Floats, PlanBuilder
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.plan_summary import node_uses
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.pod_index import Once, PodIndex
from reserver.rebalance.policy import Arguments, Profile
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
    policy = given.policy
    loads = given.loads or dumped_loads(given.cluster, policy, given.now)
    index = PodIndex(given.cluster, policy.node_selector, partial(cost, now=given.now))
    planned = PlanningSnapshot(
        snapshot_of(index.cluster, held),
        [each.pod for each in index.pods],
        Disruptions(index.cluster.budgets),
    )
    builder, rounds = PlanBuilder(planned, index, policy.limits), dict[str, Rounds]()
    _run(replace(given, loads=loads), builder, rounds)
    kept, more_kept = builder.kept()
    plan = Plan(
        moves=tuple(builder.moves),
        kept=kept,
        more_kept=more_kept,
        nodes=node_uses(planned),
        notes=tuple(builder.notes),
    )
    return Decision(plan=with_costs(plan, given.cluster, given.now), rounds=rounds)


def _run(given: RoundInput, builder: PlanBuilder, rounds: dict[str, Rounds]) -> None:
    """Run the strategies of a policy on a plan."""
    policy, turns = given.policy, given.policy.turns
    exchanges, ready = Exchanges(builder), Once(partial(_ready, builder))
    weights = Once(partial(_weights, builder.planned))
    is_about_nodes = all(isinstance(args, _ABOUT_NODES) for _, args in turns)
    prefers = any(_is_about_preferences(args) for _, args in turns)
    filters = {  # Profiles may have equal names.
        id(each): Filter(each.evictor, builder.index, given.now) for each in policy.profiles
    }
    for profile, args in turns:
        with given.timed(profile.name, args.NAME), sparing(partial(_failed, builder, args.NAME)):
            state = PlanState(
                given=given,
                rounds=rounds,
                builder=builder,
                profile=profile.name,
                strategy=args.NAME,
                protects=filters[id(profile)].why,
                looked_at=ready(policy.node_selector),
                offered=ready(profile.evictor.node_selector),
                weights=weights,
                keeps_preferences=prefers and args in profile.balance,
            )
            for batch in PLAN[type(args)](args, state):
                for candidate in batch:
                    state.move(candidate)
            exchanges.resolve(state.may_step_aside if is_about_nodes else stay)


def protection(given: RoundInput, profile: Profile) -> Callable[[ListedPod], str]:
    """Return what protects pods from a profile's evictor; where they fit is not its business."""
    index = PodIndex(given.cluster, given.policy.node_selector)
    numbers = {pod.pod.uid: number for number, pod in enumerate(index.pods)}
    evictor = Filter(profile.evictor, index, given.now)
    return lambda each: evictor.why(numbers[each.pod.uid])


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
