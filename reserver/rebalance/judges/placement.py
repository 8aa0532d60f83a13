"""Pods on nodes that their own rules, or the nodes', forbid by now."""

from __future__ import annotations

import numpy as np

from reserver.cluster.constraints import Taint
from reserver.rebalance.arguments import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.inventory import ListedPod
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.stage import Floats
from reserver.scheduling.node_rules import allowed_by_affinity


def anti_affinity(cycle: Cycle, args: RemovePodsViolatingInterPodAntiAffinity) -> None:
    """Move pods away from those that their own required anti-affinity names."""
    board = cycle.stage.scene.board
    everywhere = np.ones(len(board.closed), dtype=np.bool_)
    for number in cycle.pods(args.namespaces, args.label_selector):
        if board.pods[number].constraints.anti_affinity and board.is_near_foes(number):
            node = board.pods[number].node
            reason = f"its anti-affinity forbids pods that are near it on {node}"
            cycle.send(number, everywhere, cycle.why(reason, "its anti-affinity is met"))


def node_affinity(cycle: Cycle, args: RemovePodsViolatingNodeAffinity) -> None:
    """Move pods whose node does not meet their node affinity, or meets it less than another."""
    board = cycle.stage.scene.board
    snapshot = board.snapshot
    everywhere = np.ones(len(board.closed), dtype=np.bool_)
    for number in cycle.pods(args.namespaces, args.label_selector):
        each, row = cycle.stage.pods[number], int(board.rows[number])
        constraints = each.pod.constraints
        is_required = NodeAffinityType.REQUIRED in args.types and constraints.node_terms is not None
        if is_required and not allowed_by_affinity(constraints, snapshot)[row]:
            reason = f"{each.node} does not meet its required node affinity"
            cycle.send(
                number, everywhere, cycle.why(reason, "its node affinity is met"), waits=True
            )
        elif NodeAffinityType.PREFERRED in args.types and each.preferences:
            weights = _weights(each, cycle)
            better = weights > weights[row]
            if better.any():
                why = cycle.why(
                    f"other nodes meet its preferred node affinity better than {each.node}",
                    "its node affinity is met better",
                )
                cycle.send(number, better, why, -weights, waits=True)


def node_taints(cycle: Cycle, args: RemovePodsViolatingNodeTaints) -> None:
    """Move pods that do not tolerate a taint of their node."""
    board, nodes = cycle.stage.scene.board, cycle.stage.inventory.nodes
    counted = {
        name: tuple(taint for taint in node.taints if _counts(taint, args))
        for name, node in nodes.items()
    }
    size = len(board.closed)
    for number in cycle.pods(args.namespaces, args.label_selector):
        each = cycle.stage.pods[number]
        untolerated = _untolerated(each, counted.get(each.node, ()))
        if untolerated is None:
            continue
        accept = np.zeros(size, dtype=np.bool_)
        free = [name for name, taints in counted.items() if _untolerated(each, taints) is None]
        accept[board.snapshot.rows(free)] = True
        shown = f"{untolerated.key}={untolerated.value}".removesuffix("=")
        reason = f"it does not tolerate the taint {shown}:{untolerated.effect} of {each.node}"
        cycle.send(
            number, accept, cycle.why(reason, "it tolerates all taints of its node"), waits=True
        )


def _weights(each: ListedPod, cycle: Cycle) -> Floats:
    """Return, for each row, how much of a pod's preferred node affinity it meets."""
    topology = cycle.stage.scene.board.snapshot.topology
    weights: Floats = np.zeros(len(cycle.seen))
    for preference in each.preferences:
        weights += preference.weight * topology.meeting([preference.term])
    return weights


def _counts(taint: Taint, args: RemovePodsViolatingNodeTaints) -> bool:
    """Return whether a policy is about a taint."""
    names = {taint.key, f"{taint.key}={taint.value}"}
    effects = {"NoSchedule"} | ({"PreferNoSchedule"} if args.include_prefer_no_schedule else set())
    if taint.effect not in effects or names & args.excluded_taints:
        return False
    return args.included_taints is None or bool(names & args.included_taints)


def _untolerated(each: ListedPod, taints: tuple[Taint, ...]) -> Taint | None:
    tolerations = each.pod.constraints.tolerations
    return next((t for t in taints if not any(own.tolerates(t) for own in tolerations)), None)
