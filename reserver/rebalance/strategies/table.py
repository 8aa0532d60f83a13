"""The strategies of both states, by the type of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reserver.rebalance.arguments import load, placement, recycling, utilization
from reserver.rebalance.candidate import Batches
from reserver.rebalance.strategies import (
    low_node_load,
    remove_duplicates,
    spread_together,
    upstream_spread,
    upstream_utilization,
    utilization_together,
)
from reserver.rebalance.strategies import placement as violations
from reserver.rebalance.strategies import recycling as restarts

Find = Callable[[Any, Any], Batches]
"""Given arguments and a state, yields batches of candidates."""

_BOTH: Mapping[type, Find] = {
    placement.RemoveDuplicates: remove_duplicates.find,
    placement.RemovePodsViolatingInterPodAntiAffinity: violations.by_anti_affinity,
    placement.RemovePodsViolatingNodeAffinity: violations.by_node_affinity,
    placement.RemovePodsViolatingNodeTaints: violations.by_node_taints,
    recycling.PodLifeTime: restarts.by_life_time,
    recycling.RemoveFailedPods: restarts.by_failure,
    recycling.RemovePodsHavingTooManyRestarts: restarts.by_restarts,
}

UPSTREAM: dict[type, Find] = {
    **_BOTH,
    placement.RemovePodsViolatingTopologySpreadConstraint: upstream_spread.find,
    utilization.HighNodeUtilization: upstream_utilization.empty,
    utilization.LowNodeUtilization: upstream_utilization.level,
}
"""The strategies on a state that forgets evicted pods."""

PLAN: dict[type, Find] = {
    **_BOTH,
    load.LowNodeLoad: low_node_load.find,
    placement.RemovePodsViolatingTopologySpreadConstraint: spread_together.find,
    utilization.HighNodeUtilization: utilization_together.empty,
    utilization.LowNodeUtilization: utilization_together.level,
}
"""On a state that moves what leaves (docs/adr/0065 says which strategies differ, and why)."""
