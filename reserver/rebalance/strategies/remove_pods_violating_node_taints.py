"""RemovePodsViolatingNodeTaints: pods on nodes with a taint that they do not tolerate."""

from __future__ import annotations

from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.arguments.placement import RemovePodsViolatingNodeTaints
from reserver.rebalance.pod_index import PodIndex, tolerates
from reserver.rebalance.strategies.candidate import Batches, Candidate, Judge


def find(args: RemovePodsViolatingNodeTaints, view: PodIndex, judge: Judge, now: float) -> Batches:  # noqa: ARG001 - all strategies alike
    """Yield the pods of each node that do not tolerate one of its taints."""
    chosen = view.chosen(args.namespaces, args.label_selector)
    for row in view.shown_rows():
        taints = tuple(taint for taint in view.nodes[row].taints if _counts(args, taint))
        if not taints:
            continue
        found = []
        for pod in view.listed(row):
            taint = _untolerated(view.pods[pod].pod.constraints.tolerations, taints)
            if taint and chosen[pod] and judge.passes(pod):
                found.append(Candidate(pod, f"does not tolerate the taint {_show(taint)}"))
        yield found


def _counts(args: RemovePodsViolatingNodeTaints, taint: Taint) -> bool:
    soft = args.include_prefer_no_schedule and taint.effect == "PreferNoSchedule"
    if taint.effect != "NoSchedule" and not soft:
        return False
    included = args.included_taints is None or _is_among(taint, args.included_taints)
    return included and not _is_among(taint, args.excluded_taints)


def _is_among(taint: Taint, written: frozenset[str]) -> bool:
    return taint.key in written or bool(taint.value and f"{taint.key}={taint.value}" in written)


def _untolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> Taint | None:
    return next((taint for taint in taints if not tolerates(tolerations, taint)), None)


def _show(taint: Taint) -> str:
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
    )
