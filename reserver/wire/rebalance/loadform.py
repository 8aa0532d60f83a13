"""The ``args`` of LowNodeLoad: those of koord-descheduler (v1alpha2), and where load is read.

Koordinator reads its own agent, so `metricsUtilization` is ours, named as LowNodeUtilization has
it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments import load as values
from reserver.rebalance.arguments.utilization import UsageSource
from reserver.wire.limits import Int32, Int64
from reserver.wire.rebalance.parts import (
    Args,
    LabelSelector,
    Names,
    Part,
    Problems,
    UInt32,
    above,
    among,
    choice,
    duration,
    duration_problems,
    one_choice,
    selector,
    selector_problems,
    threshold_problems,
)

_SOURCES = (UsageSource.KUBERNETES, UsageSource.PROMETHEUS)


class _Anomaly(Part):
    timeout: str = "1m"
    consecutive_abnormalities: UInt32 = 0
    consecutive_normalities: UInt32 = 3

    def value(self) -> values.AnomalyCondition:
        return values.AnomalyCondition(
            timeout_s=duration(self.timeout),
            consecutive_abnormalities=self.consecutive_abnormalities or 5,
            consecutive_normalities=self.consecutive_normalities,
        )


class _Pool(Part):
    name: str = ""
    node_selector: LabelSelector | None = None
    use_deviation_thresholds: bool = False
    high_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    low_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    resource_weights: dict[str, Int64] = msgspec.field(default_factory=dict)
    anomaly_condition: _Anomaly = msgspec.field(default_factory=_Anomaly)

    def problems(self) -> Problems:
        yield from selector_problems("nodeSelector", self.node_selector)
        yield from threshold_problems("lowThresholds", self.low_thresholds)
        yield from threshold_problems("highThresholds", self.high_thresholds)
        if not self.use_deviation_thresholds:
            yield from above("lowThresholds", self.low_thresholds, self.high_thresholds)
        yield from duration_problems("anomalyCondition.timeout", self.anomaly_condition.timeout)
        for name, weight in self.resource_weights.items():
            if weight < 0:
                path = f"resourceWeights.{shorten(name)}"
                yield InvalidInput(path, f"{weight} is negative", "write a weight of 0 or more")

    def value(self) -> values.NodePool:
        return values.NodePool(
            name=self.name,
            node_selector=selector(self.node_selector),
            low_thresholds=self.low_thresholds,
            high_thresholds=self.high_thresholds,
            use_deviation_thresholds=self.use_deviation_thresholds,
            resource_weights=self.resource_weights,
            anomaly_condition=self.anomaly_condition.value(),
        )


class _PodSelector(Part):
    name: str = ""
    selector: LabelSelector | None = None


class _Queries(Part):
    queries: dict[str, str] = msgspec.field(default_factory=dict)


class _Usage(Part):
    source: str = UsageSource.KUBERNETES.value
    prometheus: _Queries | None = None

    @property
    def queries(self) -> Mapping[str, str]:
        return self.prometheus.queries if self.prometheus else {}


class LowNodeLoad(Args):
    """Arguments of LowNodeLoad."""

    paused: bool = False
    dry_run: bool = False
    number_of_nodes: Int32 = 0
    node_metric_expiration_seconds: Int64 = 180
    evictable_namespaces: Names | None = None
    node_selector: LabelSelector | None = None
    pod_selectors: tuple[_PodSelector, ...] = ()
    node_fit: bool = True
    use_deviation_thresholds: bool = False
    high_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    low_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    resource_weights: dict[str, Int64] = msgspec.field(default_factory=dict)
    anomaly_condition: _Anomaly = msgspec.field(default_factory=_Anomaly)
    detector_cache_timeout: str = "5m"
    node_pools: tuple[_Pool, ...] = ()
    metrics_utilization: _Usage = msgspec.field(default_factory=_Usage)

    def problems(self) -> Problems:
        yield from one_choice("evictableNamespaces", self.evictable_namespaces)
        for index, each in enumerate(self.pod_selectors):
            yield from selector_problems(f"podSelectors[{index}].selector", each.selector)
        for path, number in (
            ("numberOfNodes", self.number_of_nodes),
            ("nodeMetricExpirationSeconds", self.node_metric_expiration_seconds),
        ):
            if number < 0:
                yield InvalidInput(path, f"{number} is negative", "write 0 or more")
        yield from duration_problems("detectorCacheTimeout", self.detector_cache_timeout)
        for index, pool in enumerate(self.node_pools):
            for problem in pool.problems():
                yield problem.under(f"nodePools[{index}]")
        if self._has_own or not self.node_pools:
            yield from self._own.problems()
        yield from among("metricsUtilization.source", [self.metrics_utilization.source], _SOURCES)

    @property
    def _has_own(self) -> bool:
        return bool(self.low_thresholds or self.high_thresholds)

    @property
    def _own(self) -> _Pool:
        """The pool that its own thresholds describe: the last one."""
        return _Pool(
            node_selector=self.node_selector,
            use_deviation_thresholds=self.use_deviation_thresholds,
            high_thresholds=self.high_thresholds,
            low_thresholds=self.low_thresholds,
            resource_weights=self.resource_weights,
            anomaly_condition=self.anomaly_condition,
        )

    def value(self) -> values.LowNodeLoad:
        """Return what the strategy works with."""
        return values.LowNodeLoad(
            paused=self.paused,
            dry_run=self.dry_run,
            number_of_nodes=self.number_of_nodes,
            node_metric_expiration_seconds=self.node_metric_expiration_seconds,
            evictable_namespaces=choice(self.evictable_namespaces),
            pod_selectors=tuple(selector(each.selector) for each in self.pod_selectors),
            node_fit=self.node_fit,
            detector_cache_timeout_s=duration(self.detector_cache_timeout),
            node_pools=tuple(
                pool.value() for pool in (*self.node_pools, *([self._own] if self._has_own else []))
            ),
            usage=UsageSource(self.metrics_utilization.source),
            query=self.metrics_utilization.queries,
        )
