"""LowNodeLoad: how even the measured load of nodes is to be, as Koordinator has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from reserver.cluster.labels import EVERYTHING
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import (
    ALL,
    Args,
    Choice,
    Int32,
    Int64,
    LabelSelector,
    NamedSelector,
    PolicyPart,
    Problems,
    Seconds,
    Thresholds,
    UInt32,
    above,
    among,
    one_choice,
    threshold_problems,
)
from reserver.rebalance.arguments.utilization import MEASURED, UsageSource

LOADS = (*MEASURED, UsageSource.NODE_METRIC)
"""The sources of load, which LowNodeLoad alone reads."""

_ABNORMALITIES = 5


class AnomalyCondition(PolicyPart, frozen=True):
    """When a node counts as hot for `LowNodeLoad`: not at its first hot round.

    Attributes:
        timeout_s: for how long it counts then, in seconds; after that it begins anew.
        consecutive_abnormalities: hot rounds in a row that are tolerated, the next one counts;
            with 1 the first one counts.
        consecutive_normalities: rounds in a row that are not hot until it counts as normal again.
    """

    timeout_s: Seconds = msgspec.field(default=60.0, name="timeout")
    consecutive_abnormalities: UInt32 = _ABNORMALITIES
    consecutive_normalities: UInt32 = 3

    def __post_init__(self) -> None:
        """Take 0 for the default, as Koordinator does."""
        if not self.consecutive_abnormalities:
            msgspec.structs.force_setattr(self, "consecutive_abnormalities", _ABNORMALITIES)


class NodePool(PolicyPart, frozen=True):
    """Nodes that `LowNodeLoad` balances among themselves.

    Attributes:
        name: for messages.
        node_selector: its nodes; one that an earlier pool has found hot is left to that pool.
        low_thresholds: a node at or below all of them takes load.
        high_thresholds: one above any of them is hot.
        prod_low_thresholds: a node whose prod pods use no more takes prod pods.
        prod_high_thresholds: prod pods leave a node where they use more of any of them.
        use_deviation_thresholds: thresholds are distances from the mean of the pool.
        resource_weights: how much a resource counts in sorting; 1 for those without a weight.
        anomaly_condition: when a hot node counts.
    """

    name: str = ""
    node_selector: LabelSelector = EVERYTHING
    low_thresholds: Thresholds = msgspec.field(default_factory=dict)
    high_thresholds: Thresholds = msgspec.field(default_factory=dict)
    prod_low_thresholds: Thresholds = msgspec.field(default_factory=dict)
    prod_high_thresholds: Thresholds = msgspec.field(default_factory=dict)
    use_deviation_thresholds: bool = False
    resource_weights: Mapping[str, Int64] = msgspec.field(default_factory=dict)
    anomaly_condition: AnomalyCondition = AnomalyCondition()

    def problems(self) -> Problems:
        """Yield what Koordinator refuses."""
        yield from threshold_problems("lowThresholds", self.low_thresholds)
        yield from threshold_problems("highThresholds", self.high_thresholds)
        if not self.use_deviation_thresholds:
            yield from above("lowThresholds", self.low_thresholds, self.high_thresholds)
        if self.prod is not None:
            yield from self._prod_problems()
        for name, weight in self.resource_weights.items():
            if weight < 0:
                path = f"resourceWeights.{shorten(name)}"
                yield InvalidInput(path, f"{weight} is negative", "write a weight of 0 or more")

    def _prod_problems(self) -> Problems:
        low, high = self.prod_low_thresholds, self.prod_high_thresholds
        yield from threshold_problems("prodLowThresholds", low)
        yield from threshold_problems("prodHighThresholds", high)
        if not self.use_deviation_thresholds:
            yield from above("prodLowThresholds", low, high)
        for path, thresholds in (("prodLowThresholds", low), ("prodHighThresholds", high)):
            for name in thresholds.keys() - self.high_thresholds.keys():
                problem = "is not in highThresholds"
                remedy = "write a threshold of all pods for it, too"
                yield InvalidInput(f"{path}.{shorten(name)}", problem, remedy)

    @property
    def prod(self) -> NodePool | None:
        """The pool with its prod thresholds in place of the others; None if it has none."""
        low, high = self.prod_low_thresholds, self.prod_high_thresholds
        if not (low or high):
            return None
        return msgspec.structs.replace(self, low_thresholds=low, high_thresholds=high)


class Queries(PolicyPart, frozen=True):
    """Queries of Prometheus, by resource, for the amount that each node uses."""

    queries: Mapping[str, str] = msgspec.field(default_factory=dict)


class LoadSource(PolicyPart, frozen=True):
    """The source of load. Koordinator only reads its own agent, so these fields are Reserver's."""

    source: str = UsageSource.KUBERNETES.value
    prometheus: Queries = Queries()


class LowNodeLoad(Args, frozen=True):
    """Pods leave nodes whose real load is high for nodes where it is low, as Koordinator has it.

    Fields and defaults follow ``LowNodeLoadArgs`` of koord-descheduler (v1alpha2).

    Attributes:
        paused: the strategy plans no moves.
        dry_run: its moves are planned and not carried out.
        number_of_nodes: the strategy acts if more nodes than this take load.
        node_metric_expiration_seconds: a node whose load is older is skipped.
        evictable_namespaces: pods elsewhere are counted and stay.
        pod_selectors: pods that leave match one of them; empty for any pod.
        node_fit: only pods that fit on a node that takes load leave.
        detector_cache_timeout_s: how long a node's rounds are remembered after it was last seen.
        pools: the pools of the file; its top-level thresholds form one more pool.
        metrics_utilization: the source of load.
    """

    NAME: ClassVar[str] = "LowNodeLoad"

    paused: bool = False
    dry_run: bool = False
    number_of_nodes: Int32 = 0
    node_metric_expiration_seconds: Int64 = 180
    evictable_namespaces: Choice = ALL
    pod_selectors: tuple[NamedSelector, ...] = ()
    node_fit: bool = True
    detector_cache_timeout_s: Seconds = msgspec.field(default=300.0, name="detectorCacheTimeout")
    node_selector: LabelSelector = EVERYTHING
    low_thresholds: Thresholds = msgspec.field(default_factory=dict)
    high_thresholds: Thresholds = msgspec.field(default_factory=dict)
    prod_low_thresholds: Thresholds = msgspec.field(default_factory=dict)
    prod_high_thresholds: Thresholds = msgspec.field(default_factory=dict)
    use_deviation_thresholds: bool = False
    resource_weights: Mapping[str, Int64] = msgspec.field(default_factory=dict)
    anomaly_condition: AnomalyCondition = AnomalyCondition()
    pools: tuple[NodePool, ...] = msgspec.field(default=(), name="nodePools")
    metrics_utilization: LoadSource = LoadSource()

    @property
    def usage(self) -> UsageSource:
        """The source of load, never requests."""
        return UsageSource(self.metrics_utilization.source)

    @property
    def query(self) -> Mapping[str, str]:
        """The queries of Prometheus, by resource; empty for ours."""
        return self.metrics_utilization.prometheus.queries

    @property
    def node_pools(self) -> tuple[NodePool, ...]:
        """The pools in order; the top-level thresholds form the last one."""
        return (*self.pools, self._own) if self._has_own else self.pools

    @property
    def _own(self) -> NodePool:
        shared = NodePool.__struct_fields__[1:]
        return NodePool(**{name: getattr(self, name) for name in shared})

    @property
    def _has_own(self) -> bool:
        given = (self.low_thresholds, self.high_thresholds)
        return any((*given, self.prod_low_thresholds, self.prod_high_thresholds))

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from one_choice("evictableNamespaces", self.evictable_namespaces)
        for path, number in (
            ("numberOfNodes", self.number_of_nodes),
            ("nodeMetricExpirationSeconds", self.node_metric_expiration_seconds),
        ):
            if number < 0:
                yield InvalidInput(path, f"{number} is negative", "write 0 or more")
        for index, pool in enumerate(self.pools):
            for problem in pool.problems():
                yield problem.under(f"nodePools[{index}]")
        if self._has_own or not self.pools:
            yield from self._own.problems()
        yield from among("metricsUtilization.source", [self.metrics_utilization.source], LOADS)
