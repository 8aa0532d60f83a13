"""How even the real load of nodes is to be, as LowNodeLoad has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.rebalance.arguments.selecting import ALL, Choice
from reserver.rebalance.arguments.utilization import Thresholds, UsageSource


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyCondition:
    """When a node counts as hot for `LowNodeLoad`: not at its first hot round.

    Attributes:
        timeout_s: for how long it counts then, in seconds; after that it begins anew.
        consecutive_abnormalities: hot rounds in a row that are tolerated, the next one counts;
            with 1 the first one counts.
        consecutive_normalities: rounds in a row that are not hot until it counts as normal again.
    """

    timeout_s: float = 60.0
    consecutive_abnormalities: int = 5
    consecutive_normalities: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes that `LowNodeLoad` balances among themselves.

    Attributes:
        name: for messages.
        node_selector: its nodes; one that an earlier pool has found hot is left to that pool.
        low_thresholds: a node at or below all of them takes load.
        high_thresholds: one above any of them is hot.
        use_deviation_thresholds: thresholds are distances from the mean of the pool.
        resource_weights: how much a resource counts in sorting; 1 for those without a weight.
        anomaly_condition: when a hot node counts.
    """

    name: str = ""
    node_selector: Selector = EVERYTHING
    low_thresholds: Thresholds
    high_thresholds: Thresholds
    use_deviation_thresholds: bool = False
    resource_weights: Mapping[str, int] = field(default_factory=dict)
    anomaly_condition: AnomalyCondition = AnomalyCondition()


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeLoad:
    """Pods leave nodes whose real load is high for nodes where it is low, as Koordinator has it.

    Fields and defaults are those of ``LowNodeLoadArgs`` of koord-descheduler (v1alpha2); the
    thresholds at its top level are the last pool. `usage` and `query` are ours: Koordinator reads
    its own agent.

    Attributes:
        paused: it does nothing.
        dry_run: its moves are planned and not carried out.
        number_of_nodes: it acts if more nodes than so many take load.
        node_metric_expiration_seconds: a node whose load is older is skipped.
        evictable_namespaces: pods elsewhere are counted and stay.
        pod_selectors: pods that leave match one of them; empty for any pod.
        node_fit: only pods that fit on a node that takes load leave.
        detector_cache_timeout_s: how long a node's rounds are remembered after it was last seen.
        node_pools: in order; at least one.
        usage: where it reads what is used; never requests.
        query: of Prometheus, by resource, for the amount that each node uses; empty for ours.
    """

    NAME: ClassVar = "LowNodeLoad"

    paused: bool = False
    dry_run: bool = False
    number_of_nodes: int = 0
    node_metric_expiration_seconds: int = 180
    evictable_namespaces: Choice = ALL
    pod_selectors: tuple[Selector, ...] = ()
    node_fit: bool = True
    detector_cache_timeout_s: float = 300.0
    node_pools: tuple[NodePool, ...]
    usage: UsageSource = UsageSource.KUBERNETES
    query: Mapping[str, str] = field(default_factory=dict)
