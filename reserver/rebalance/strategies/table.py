"""The strategies of both states, by the type of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reserver.rebalance.arguments import load, placement, recycling, utilization
from reserver.rebalance.strategies import (
    high_node_utilization,
    low_node_load,
    low_node_utilization,
    pod_life_time,
    remove_duplicates,
    remove_failed_pods,
    remove_pods_having_too_many_restarts,
    remove_pods_violating_inter_pod_anti_affinity,
    remove_pods_violating_node_affinity,
    remove_pods_violating_node_taints,
    remove_pods_violating_topology_spread_constraint,
    spread_together,
    utilization_together,
)
from reserver.rebalance.strategies.candidate import Batches

Find = Callable[[Any, Any], Batches]
"""Given arguments and a state, yields batches of candidates."""

_BOTH: Mapping[type, Find] = {
    placement.RemoveDuplicates: remove_duplicates.find,
    placement.RemovePodsViolatingInterPodAntiAffinity: (
        remove_pods_violating_inter_pod_anti_affinity.find
    ),
    placement.RemovePodsViolatingNodeAffinity: remove_pods_violating_node_affinity.find,
    placement.RemovePodsViolatingNodeTaints: remove_pods_violating_node_taints.find,
    recycling.PodLifeTime: pod_life_time.find,
    recycling.RemoveFailedPods: remove_failed_pods.find,
    recycling.RemovePodsHavingTooManyRestarts: remove_pods_having_too_many_restarts.find,
}

UPSTREAM: dict[type, Find] = {
    **_BOTH,
    placement.RemovePodsViolatingTopologySpreadConstraint: (
        remove_pods_violating_topology_spread_constraint.find
    ),
    utilization.HighNodeUtilization: high_node_utilization.find,
    utilization.LowNodeUtilization: low_node_utilization.find,
}
"""On a state that forgets what it evicts."""

PLAN: dict[type, Find] = {
    **_BOTH,
    load.LowNodeLoad: low_node_load.find,
    placement.RemovePodsViolatingTopologySpreadConstraint: spread_together.find,
    utilization.HighNodeUtilization: utilization_together.empty,
    utilization.LowNodeUtilization: utilization_together.level,
}
"""On a state that moves what leaves (docs/adr/0065 says which strategies differ, and why)."""
