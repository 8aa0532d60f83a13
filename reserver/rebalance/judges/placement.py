"""Pods on nodes that their own rules, or the nodes', forbid by now."""

from __future__ import annotations

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.rebalance.arguments import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.inventory import ListedPod
from reserver.rebalance.judges.cycle import Cycle
from reserver.scheduling.node_rules import allowed_by_affinity


def anti_affinity(cycle: Cycle, args: RemovePodsViolatingInterPodAntiAffinity) -> None:
    """Move pods away from those that their own required anti-affinity names."""
    board = cycle.stage.scene.board
    everywhere = np.ones(len(board.closed), dtype=np.bool_)
    found = cycle.pods(
        args.namespaces, args.label_selector, lambda each: bool(each.pod.constraints.anti_affinity)
    )
    for number in found:
        # Only pods leave their foes here: who had none at first has none now.
        if board.may_be_near_foes(number)[board.rows[number]] and board.is_near_foes(number):
            node = board.pods[number].node
            reason = f"its anti-affinity forbids pods that are near it on {node}"
            cycle.send(number, everywhere, cycle.why(reason, "its anti-affinity is met"))


def node_affinity(cycle: Cycle, args: RemovePodsViolatingNodeAffinity) -> None:
    """Move pods whose node does not meet their node affinity, or meets it less than another."""
    board = cycle.stage.scene.board
    snapshot = board.snapshot
    everywhere = np.ones(len(board.closed), dtype=np.bool_)
    allowed: dict[Constraints, Bools] = {}
    may_prefer = NodeAffinityType.PREFERRED in args.types

    def is_out_of_place(each: ListedPod) -> bool:
        constraints = each.pod.constraints
        if NodeAffinityType.REQUIRED not in args.types or constraints.node_terms is None:
            return False
        if constraints not in allowed:
            allowed[constraints] = allowed_by_affinity(constraints, snapshot)
        return not allowed[constraints][snapshot.rows([each.node])[0]]

    def is_meant(each: ListedPod) -> bool:
        return is_out_of_place(each) or bool(may_prefer and each.preferences)

    for number in cycle.pods(args.namespaces, args.label_selector, is_meant):
        each, row = cycle.stage.pods[number], int(board.rows[number])
        if is_out_of_place(each):
            reason = f"{each.node} does not meet its required node affinity"
            cycle.send(
                number, everywhere, cycle.why(reason, "its node affinity is met"), waits=True
            )
        else:
            weights = cycle.met(each)
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
    accepting: dict[tuple[Toleration, ...], Bools] = {}

    def untolerated(each: ListedPod) -> Taint | None:
        return _untolerated(each, counted.get(each.node, ()))

    found = cycle.pods(
        args.namespaces, args.label_selector, lambda each: untolerated(each) is not None
    )
    for number in found:
        each = cycle.stage.pods[number]
        taint = untolerated(each)
        if taint is None:  # Not since it was found.
            continue
        tolerations = each.pod.constraints.tolerations
        if tolerations not in accepting:
            free = [name for name, taints in counted.items() if not _untolerated(each, taints)]
            accepting[tolerations] = np.zeros(len(board.closed), dtype=np.bool_)
            accepting[tolerations][board.snapshot.rows(free)] = True
        shown = f"{taint.key}={taint.value}".removesuffix("=")
        reason = f"it does not tolerate the taint {shown}:{taint.effect} of {each.node}"
        cycle.send(
            number,
            accepting[tolerations],
            cycle.why(reason, "it tolerates all taints of its node"),
            waits=True,
        )


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
