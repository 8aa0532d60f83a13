"""The ``args`` of the strategies that compare how much of nodes is used, checked as upstream."""

from __future__ import annotations

import msgspec

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments import utilization as values
from reserver.rebalance.arguments.utilization import UsageSource
from reserver.wire.limits import Int64
from reserver.wire.rebalance.parts import (
    Args,
    Names,
    Part,
    Problems,
    UInt,
    above,
    among,
    only_exclude,
    threshold_problems,
)

METRIC_RESOURCE = "MetricResource"
"""What upstream calls the only resource that a query of Prometheus can be about."""


class _Query(Part):
    query: str = ""


class _MetricsUtilization(Part):
    metrics_server: bool = False
    source: str = ""
    prometheus: _Query | None = None

    def problems(self) -> Problems:
        if self.source == UsageSource.KUBERNETES:
            remedy = "remove one of the two"
            if self.metrics_server:
                yield InvalidInput("metricsServer", f"is given beside source {self.source}", remedy)
            if self.prometheus is not None:
                yield InvalidInput("prometheus", f"is given beside source {self.source}", remedy)
        elif self.source == UsageSource.PROMETHEUS and not (
            self.prometheus and self.prometheus.query
        ):
            remedy = "write a query that returns the used share of each node, from 0 to 1"
            yield InvalidInput("prometheus.query", "is missing", remedy)

    @property
    def usage(self) -> UsageSource:
        """Where load is read; an unknown source means requests, as upstream has it."""
        known = self.source in {UsageSource.KUBERNETES, UsageSource.PROMETHEUS}
        if known:
            return UsageSource(self.source)
        return UsageSource.KUBERNETES if self.metrics_server else UsageSource.REQUESTS


class _Limits(Part):
    node: UInt | None = None


class LowNodeUtilization(Args):
    """Arguments of LowNodeUtilization."""

    use_deviation_thresholds: bool = False
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    target_thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    number_of_nodes: Int64 = 0
    metrics_utilization: _MetricsUtilization | None = None
    evictable_namespaces: Names | None = None
    eviction_limits: _Limits | None = None

    def problems(self) -> Problems:
        yield from only_exclude(self.evictable_namespaces)
        yield from threshold_problems("thresholds", self.thresholds)
        yield from threshold_problems("targetThresholds", self.target_thresholds)
        if self.thresholds.keys() != self.target_thresholds.keys():
            differing = sorted(self.thresholds.keys() ^ self.target_thresholds.keys())
            problem = f"thresholds and targetThresholds differ in {shorten(', '.join(differing))}"
            yield InvalidInput("targetThresholds", problem, "write the same resources in both")
        elif not self.use_deviation_thresholds:
            yield from above("thresholds", self.thresholds, self.target_thresholds)
        if self.metrics_utilization is not None:
            for each in self.metrics_utilization.problems():
                yield each.under("metricsUtilization")
            if self._usage is UsageSource.PROMETHEUS and set(self.thresholds) != {METRIC_RESOURCE}:
                problem = f"must have {METRIC_RESOURCE} alone if load is read from Prometheus"
                yield InvalidInput("thresholds", problem, f"write {METRIC_RESOURCE}: PERCENT")

    def warnings(self) -> Problems:
        written = self.metrics_utilization
        if written and written.source and written.usage.value != written.source:
            problem = f"{shorten(repr(written.source))} is not known, and ignored"
            remedy = f"write {UsageSource.KUBERNETES} or {UsageSource.PROMETHEUS}"
            yield InvalidInput("metricsUtilization.source", problem, remedy)

    @property
    def _usage(self) -> UsageSource:
        return self.metrics_utilization.usage if self.metrics_utilization else UsageSource.REQUESTS

    def value(self) -> values.LowNodeUtilization:
        prometheus = self.metrics_utilization.prometheus if self.metrics_utilization else None
        is_asked = self._usage is UsageSource.PROMETHEUS and prometheus is not None
        excluded = self.evictable_namespaces.exclude if self.evictable_namespaces else ()
        return values.LowNodeUtilization(
            thresholds=self.thresholds,
            target_thresholds=self.target_thresholds,
            use_deviation_thresholds=self.use_deviation_thresholds,
            number_of_nodes=self.number_of_nodes,
            usage=self._usage,
            query=prometheus.query if is_asked and prometheus else "",
            exclude_namespaces=frozenset(excluded),
            most_per_node=self.eviction_limits.node if self.eviction_limits else None,
        )


class HighNodeUtilization(Args):
    """Arguments of HighNodeUtilization."""

    thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    number_of_nodes: Int64 = 0
    eviction_modes: tuple[str, ...] = ()
    evictable_namespaces: Names | None = None

    def problems(self) -> Problems:
        yield from only_exclude(self.evictable_namespaces)
        yield from threshold_problems("thresholds", self.thresholds)
        yield from among("evictionModes", self.eviction_modes, ["OnlyThresholdingResources"])

    def value(self) -> values.HighNodeUtilization:
        excluded = self.evictable_namespaces.exclude if self.evictable_namespaces else ()
        return values.HighNodeUtilization(
            thresholds=self.thresholds,
            number_of_nodes=self.number_of_nodes,
            only_thresholding_resources=bool(self.eviction_modes),
            exclude_namespaces=frozenset(excluded),
        )
