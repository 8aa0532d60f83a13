"""The cost of moving a pod: what is lost with it, beside what it leaves behind.

The unit is an ordinary pod that has run for a while, and has little to lose. A pod is expected to
live as long again as it has lived (LAVA, arXiv 2412.09840): to move a young one may be in vain.
"""

from __future__ import annotations

from dataclasses import replace

from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.plan import Plan

ORDINARY = 1.0

_HOUR_S = 3600.0
_MOST_HOURS = 8.0
"""A Job's pod that has run for so long costs no more for each further hour."""

_YOUNG_S = 600.0
_OFTEN = 5
"""So many restarts: who uses the pod is used to its being away."""

_IMPORTANT = 1_000_000
"""From this priority on a pod costs more: that of `high-priority` in Kubernetes' own docs."""


def cost(pod: ListedPod, now: float) -> float:
    """Return what it costs to move a pod.

    One, and more: a pod of a Job loses its work, one for each hour that it has run, up to eight; a
    volume is detached and attached, one; a priority of a million or more, one; an age below ten
    minutes, one. With five restarts or more it is half as much.

    Args:
        now: unix seconds.
    """
    age_s = max(0.0, now - (pod.started or pod.created))
    lost = min(_MOST_HOURS, age_s / _HOUR_S) if pod.pod.controller.kind == "Job" else 0.0
    total = ORDINARY + lost + bool(pod.claims) + ((pod.priority or 0) >= _IMPORTANT)
    total += age_s < _YOUNG_S
    restarts = sum(each.restarts for each in pod.containers)
    return round(total / 2 if restarts >= _OFTEN else total, 1)


def with_costs(plan: Plan, cluster: ClusterState, now: float) -> Plan:
    """Return a plan whose moves say what they cost; what gets a node for the first time costs 0."""
    leaving = {move.pod for move in plan.moves}
    pods = {each.name: each for each in cluster.pods if each.name in leaving}
    moves = (
        replace(move, cost=cost(pods[move.pod], now) if move.source and move.pod in pods else 0.0)
        for move in plan.moves
    )
    return replace(plan, moves=tuple(moves))
