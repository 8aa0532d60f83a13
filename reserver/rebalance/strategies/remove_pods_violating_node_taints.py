"""RemovePodsViolatingNodeTaints: pods on nodes with a taint that they do not tolerate."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.arguments.placement import RemovePodsViolatingNodeTaints
from reserver.rebalance.pod_index import Once
from reserver.rebalance.strategies.candidate import Batches, Candidate, StrategyState

_IMPROVES = "it tolerates all taints of its node"


def find(args: RemovePodsViolatingNodeTaints, state: StrategyState) -> Batches:
    """Yield the pods that do not tolerate one of the taints of their node."""
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
        return Candidate(pod, reason, _IMPROVES, accepted(own), waits=True)

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
