"""Pods whose node violates their anti-affinity or node affinity, or has a taint against them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.candidate import Batches, Candidate, Floats
from reserver.rebalance.pod_index import Once, PodIndex
from reserver.rebalance.strategies import StrategyState

Better = dict[tuple[int, float], tuple[Bools, Floats]]
"""Rows that meet preferences better, and the negated weights, by weights and own weight."""


def by_anti_affinity(
    args: RemovePodsViolatingInterPodAntiAffinity, state: StrategyState
) -> Batches:
    """RemovePodsViolatingInterPodAntiAffinity: yield pods one by one, the least important first.

    Once one has left, what stood in conflict with it alone no longer does; so the last one of a
    group stays.
    """
    index = state.index
    looked_at = state.chosen(args.namespaces, args.label_selector)
    conflicts = state.conflicts(looked_at)
    wary = looked_at & index.constraints.where(lambda demands: bool(demands.anti_affinity))
    for batch in state.batches(wary):
        for pod in index.least_first(batch):
            if conflicts.has(pod) and state.passes(pod):
                node = index.nodes[state.rows[pod]].name
                reason = f"its anti-affinity forbids pods that are near it on {node}"
                yield [Candidate(pod, reason, "its anti-affinity is met")]
                if state.has_left(pod):
                    conflicts.leave(pod)


def by_node_affinity(args: RemovePodsViolatingNodeAffinity, state: StrategyState) -> Batches:
    """RemovePodsViolatingNodeAffinity: yield pods that fit somewhere, and better elsewhere."""
    index = state.index
    for kinds in state.together(args.types):
        chosen = state.chosen(args.namespaces, args.label_selector)
        nobody = np.zeros_like(chosen)
        misplaced = _misplaced(chosen, state) if NodeAffinityType.REQUIRED in kinds else nobody
        unhappy = _unhappy(chosen, state) if NodeAffinityType.PREFERRED in kinds else nobody
        known: Better = {}
        for batch in state.batches(misplaced | unhappy):
            yield [
                _violating(pod, index) if misplaced[pod] else _preferring(pod, state, known)
                for pod in batch
                if state.passes(pod) and state.fits(pod)
            ]


def _misplaced(chosen: Bools, state: StrategyState) -> Bools:
    """Return which of some pods are on nodes that do not meet their required node affinity."""
    constraints = state.index.constraints
    found = chosen & constraints.where(lambda demands: demands.node_terms is not None)
    for demands, pods in constraints.groups(np.flatnonzero(found)):
        found[pods] = ~state.matching(demands)[state.rows[pods]]
    return found


def _unhappy(chosen: Bools, state: StrategyState) -> Bools:
    """Return which of some pods other nodes suit better, by their preferences."""
    preferences = state.index.preferences
    found = chosen & preferences.where(bool)
    for preferred, pods in preferences.groups(np.flatnonzero(found)):
        weights = state.weights(preferred)
        found[pods] = weights[state.rows[pods]] < weights[state.offered].max(initial=0)
    return found


def _violating(pod: int, index: PodIndex) -> Candidate:
    reason = f"{index.pods[pod].node} does not meet its required node affinity"
    return Candidate(pod, reason, "its node affinity is met", waits=True)


def _preferring(pod: int, state: StrategyState, known: Better) -> Candidate:
    listed = state.index.pods[pod]
    weights = state.weights(listed.preferences)
    own = float(weights[state.rows[pod]])
    key = id(weights), own  # The state keeps them.
    accept, score = known.get(key) or known.setdefault(key, (weights > own, -weights))
    return Candidate(
        pod,
        f"other nodes meet its preferred node affinity better than {listed.node}",
        "its node affinity is met better",
        accept,
        score,
        waits=True,
    )


def by_node_taints(args: RemovePodsViolatingNodeTaints, state: StrategyState) -> Batches:
    """RemovePodsViolatingNodeTaints: yield the pods that do not tolerate a taint of their node."""
    index = state.index
    rows_of: defaultdict[tuple[Taint, ...], list[int]] = defaultdict(list)
    for row, node in enumerate(index.nodes):
        rows_of[tuple(taint for taint in node.taints if _counts(args, taint))].append(row)
    taints_of = {row: taints for taints, rows in rows_of.items() for row in rows}

    def untolerated(own: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> Taint | None:
        return next((taint for taint in taints if not state.tolerates(own, taint)), None)

    def accepting(own: tuple[Toleration, ...]) -> Bools:
        rows = np.zeros(len(state.offered), dtype=np.bool_)
        for taints, same in rows_of.items():
            rows[same] = untolerated(own, taints) is None
        return rows

    accepted = Once(accepting)
    found = state.chosen(args.namespaces, args.label_selector)
    for demands, pods in index.constraints.groups(np.flatnonzero(found)):
        found[pods] = ~accepted(demands.tolerations)[state.rows[pods]]

    def candidate(pod: int) -> Candidate:
        own, row = index.pods[pod].pod.constraints.tolerations, int(state.rows[pod])
        taint = untolerated(own, taints_of[row])
        reason = f"it does not tolerate the taint {_show(taint)} of {index.nodes[row].name}"
        return Candidate(
            pod, reason, "it tolerates all taints of its node", accepted(own), waits=True
        )

    for batch in state.batches(found):
        yield [candidate(pod) for pod in batch if state.passes(pod)]


def _counts(args: RemovePodsViolatingNodeTaints, taint: Taint) -> bool:
    soft = args.include_prefer_no_schedule and taint.effect == "PreferNoSchedule"
    if taint.effect != "NoSchedule" and not soft:
        return False
    included = args.included_taints is None or _is_among(taint, args.included_taints)
    return included and not _is_among(taint, args.excluded_taints)


def _is_among(taint: Taint, written: frozenset[str]) -> bool:
    return taint.key in written or bool(taint.value and f"{taint.key}={taint.value}" in written)


def _show(taint: Taint | None) -> str:
    if taint is None:
        return ""
    return f"{taint.key}={taint.value}".removesuffix("=") + f":{taint.effect}"
