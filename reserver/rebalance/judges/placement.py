"""Judges of pods on nodes that affinity, anti-affinity or taints no longer allow."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.plan_builder import PlanBuilder
from reserver.rebalance.pod_index import Once
from reserver.scheduling.node_rules import allowed_by_affinity


def anti_affinity(cycle: Cycle, args: RemovePodsViolatingInterPodAntiAffinity) -> None:
    """Move pods away from those that their own required anti-affinity names."""
    stage = cycle.stage
    planned, constraints = stage.planned, stage.view.constraints
    wary = constraints.where(lambda demands: bool(demands.anti_affinity))[stage.indexes]
    wary &= cycle.chosen(args.namespaces, args.label_selector)
    for number in cycle.in_order(np.flatnonzero(wary)):
        # Only pods leave their foes here: who had none at first has none now.
        if planned.may_be_near_foes(number)[planned.rows[number]] and planned.is_near_foes(number):
            node = planned.pods[number].node
            reason = f"its anti-affinity forbids pods that are near it on {node}"
            cycle.send(number, cycle.offered, cycle.why(reason, "its anti-affinity is met"))


def node_affinity(cycle: Cycle, args: RemovePodsViolatingNodeAffinity) -> None:
    """Move pods whose node does not meet their node affinity, or meets it less than another."""
    stage = cycle.stage
    rows = stage.planned.rows
    chosen = cycle.chosen(args.namespaces, args.label_selector) & ~stage.moved
    misplaced, unhappy = np.zeros_like(chosen), np.zeros_like(chosen)
    if NodeAffinityType.REQUIRED in args.types:
        misplaced = _misplaced(stage, chosen)
    if NodeAffinityType.PREFERRED in args.types:
        unhappy = _unhappy(cycle, chosen) & ~misplaced
    for number in cycle.in_order(np.flatnonzero(misplaced | unhappy)):
        each = stage.pods[number]
        if misplaced[number]:
            reason = f"{each.node} does not meet its required node affinity"
            why = cycle.why(reason, "its node affinity is met")
            cycle.send(number, cycle.offered, why, waits=True)
        else:
            weights = cycle.met(each.preferences)
            why = cycle.why(
                f"other nodes meet its preferred node affinity better than {each.node}",
                "its node affinity is met better",
            )
            cycle.send(number, weights > weights[rows[number]], why, -weights, waits=True)


def _misplaced(stage: PlanBuilder, chosen: Bools) -> Bools:
    """Return which of some pods are on nodes that do not meet their required node affinity."""
    view, snapshot = stage.view, stage.planned.snapshot
    found = view.constraints.where(lambda demands: demands.node_terms is not None)[stage.indexes]
    found &= chosen
    for demands, pods in view.constraints.groups(stage.indexes[found]):
        numbers = stage.numbers[pods]
        found[numbers] = ~allowed_by_affinity(demands, snapshot)[stage.planned.rows[numbers]]
    return found


def _unhappy(cycle: Cycle, chosen: Bools) -> Bools:
    """Return which of some pods other nodes suit better, by their preferences."""
    stage = cycle.stage
    rows, preferences = stage.planned.rows, stage.view.preferences
    found = preferences.where(bool)[stage.indexes] & chosen
    for preferred, pods in preferences.groups(stage.indexes[found]):
        numbers, weights = stage.numbers[pods], cycle.met(preferred)
        found[numbers] = weights[rows[numbers]] < weights.max()
    return found


def node_taints(cycle: Cycle, args: RemovePodsViolatingNodeTaints) -> None:
    """Move pods that do not tolerate a taint of their node."""
    stage = cycle.stage
    snapshot, view = stage.planned.snapshot, stage.view
    counted: defaultdict[tuple[Taint, ...], list[str]] = defaultdict(list)
    for name, node in view.cluster.nodes.items():
        counted[tuple(taint for taint in node.taints if _counts(taint, args))].append(name)

    def accepting(tolerations: tuple[Toleration, ...]) -> Bools:
        found = np.zeros(len(snapshot.exists), dtype=np.bool_)
        for taints, names in counted.items():
            found[snapshot.rows(names)] = _untolerated(tolerations, taints) is None
        return found

    accepted = Once(accepting)
    found = cycle.chosen(args.namespaces, args.label_selector)
    found &= ~stage.moved
    for demands, pods in view.constraints.groups(stage.indexes[found]):
        numbers = stage.numbers[pods]
        refused = snapshot.exists & ~accepted(demands.tolerations)
        found[numbers] = refused[stage.planned.rows[numbers]]
    for number in cycle.in_order(np.flatnonzero(found)):
        each = stage.pods[number]
        tolerations, node = each.pod.constraints.tolerations, view.cluster.nodes[each.node]
        taints = tuple(taint for taint in node.taints if _counts(taint, args))
        taint = _untolerated(tolerations, taints)
        assert taint is not None  # noqa: S101 - it was refused for one
        shown = f"{taint.key}={taint.value}".removesuffix("=")
        reason = f"it does not tolerate the taint {shown}:{taint.effect} of {each.node}"
        why = cycle.why(reason, "it tolerates all taints of its node")
        cycle.send(number, accepted(tolerations), why, waits=True)


def _counts(taint: Taint, args: RemovePodsViolatingNodeTaints) -> bool:
    """Return whether a policy is about a taint."""
    names = {taint.key, f"{taint.key}={taint.value}"}
    effects = {"NoSchedule"} | ({"PreferNoSchedule"} if args.include_prefer_no_schedule else set())
    if taint.effect not in effects or names & args.excluded_taints:
        return False
    return args.included_taints is None or bool(names & args.included_taints)


def _untolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> Taint | None:
    return next((t for t in taints if not any(own.tolerates(t) for own in tolerations)), None)
