"""The cost of moving a pod.

The unit is the move of an ordinary pod that has run for a while. A pod is expected to live as long
again as it has lived (LAVA, arXiv 2412.09840): a young pod may end soon after its move.
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
"""The priority from which a pod costs more: `high-priority` in the Kubernetes docs."""


def cost(pod: ListedPod, now: float) -> float:
    """Return the cost of moving a pod.

    The cost is 1, plus 1 for each hour that a pod of a Job has run, up to 8; plus 1 for volumes,
    which are detached and attached; plus 1 for a priority of a million or more; plus 1 for an age
    below ten minutes. Five restarts or more halve the cost.

    Args:
        now: unix seconds.
    """
    age_s = max(0.0, now - (pod.started or pod.created))
    lost = min(_MOST_HOURS, age_s / _HOUR_S) if pod.pod.controller.kind == "Job" else 0.0
    total = ORDINARY + lost + bool(pod.claims) + ((pod.priority or 0) >= _IMPORTANT)
    total += age_s < _YOUNG_S
    restarts = sum([each.restarts for each in pod.containers])
    return round(total / 2 if restarts >= _OFTEN else total, 1)


def with_costs(plan: Plan, cluster: ClusterState, now: float) -> Plan:
    """Return a plan with the cost of each move; the first placement of a pending pod costs 0."""
    leaving = {move.pod for move in plan.moves}
    pods = {each.name: each for each in cluster.pods if each.name in leaving}
    moves = (
        replace(move, cost=cost(pods[move.pod], now) if move.source and move.pod in pods else 0.0)
        for move in plan.moves
    )
    return replace(plan, moves=tuple(moves))
