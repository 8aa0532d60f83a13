"""LowNodeUtilization and HighNodeUtilization: how much of nodes is used."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import (
    ALL,
    Args,
    Choice,
    Int64,
    PolicyPart,
    Problems,
    Thresholds,
    UInt,
    above,
    among,
    only_exclude,
    threshold_problems,
)

METRIC = "MetricResource"
"""Upstream's name for the only resource of a Prometheus query."""


class UsageSource(StrEnum):
    """The source of a node's usage."""

    REQUESTS = "requests"
    """The requests of the pods."""

    KUBERNETES = "KubernetesMetrics"
    """metrics.k8s.io."""

    PROMETHEUS = "Prometheus"

    NODE_METRIC = "NodeMetric"
    """NodeMetric objects, which Koordinator's agent writes."""


MEASURED = (UsageSource.KUBERNETES, UsageSource.PROMETHEUS)
"""The sources of measured load that upstream has."""


class Query(PolicyPart, frozen=True):
    """A query of Prometheus."""

    query: str = ""


class MetricsUtilization(PolicyPart, frozen=True):
    """The source of a node's usage; an unknown one means requests, as upstream has it."""

    metrics_server: bool = False
    source: str = ""
    prometheus: Query | None = None

    def problems(self) -> Problems:
        """Yield what upstream refuses."""
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
        """The source that is read."""
        if self.source in MEASURED:
            return UsageSource(self.source)
        return UsageSource.KUBERNETES if self.metrics_server else UsageSource.REQUESTS


class NodeLimit(PolicyPart, frozen=True):
    """A bound on the evictions from one node in a cycle; None for no such bound."""

    node: UInt | None = None


class LowNodeUtilization(Args, frozen=True):
    """Pods move from nodes above a threshold to those below another.

    Attributes:
        use_deviation_thresholds: thresholds are distances from the mean of all nodes.
        thresholds: a node that is at or below all of them is underutilized.
        target_thresholds: a node above any of them is overutilized; the same resources.
        number_of_nodes: the strategy acts if more nodes than this are underutilized.
        metrics_utilization: the source of usage.
        evictable_namespaces: pods in excluded namespaces are counted and stay.
        eviction_limits: most evictions from one node.
    """

    NAME: ClassVar[str] = "LowNodeUtilization"

    use_deviation_thresholds: bool = False
    thresholds: Thresholds = msgspec.field(default_factory=dict)
    target_thresholds: Thresholds = msgspec.field(default_factory=dict)
    number_of_nodes: Int64 = 0
    metrics_utilization: MetricsUtilization = MetricsUtilization()
    evictable_namespaces: Choice = ALL
    eviction_limits: NodeLimit = NodeLimit()

    @property
    def usage(self) -> UsageSource:
        """The source of a node's usage."""
        return self.metrics_utilization.usage

    @property
    def query(self) -> str:
        """The query of Prometheus for a share of 1 for each node; only with that source."""
        prometheus = self.metrics_utilization.prometheus
        return prometheus.query if prometheus and self.usage is UsageSource.PROMETHEUS else ""

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from only_exclude(self.evictable_namespaces)
        yield from threshold_problems("thresholds", self.thresholds)
        yield from threshold_problems("targetThresholds", self.target_thresholds)
        if self.thresholds.keys() != self.target_thresholds.keys():
            differing = sorted(self.thresholds.keys() ^ self.target_thresholds.keys())
            problem = f"thresholds and targetThresholds differ in {shorten(', '.join(differing))}"
            yield InvalidInput("targetThresholds", problem, "write the same resources in both")
        elif not self.use_deviation_thresholds:
            yield from above("thresholds", self.thresholds, self.target_thresholds)
        for each in self.metrics_utilization.problems():
            yield each.under("metricsUtilization")
        if self.usage is UsageSource.PROMETHEUS and set(self.thresholds) != {METRIC}:
            problem = f"must have {METRIC} alone if load is read from Prometheus"
            yield InvalidInput("thresholds", problem, f"write {METRIC}: PERCENT")

    def warnings(self) -> Problems:
        """Yield accepted fields that have no effect."""
        source = self.metrics_utilization.source
        if source and source not in MEASURED:
            problem = f"{shorten(repr(source))} is not known, and ignored"
            remedy = f"write {' or '.join(MEASURED)}"
            yield InvalidInput("metricsUtilization.source", problem, remedy)


class HighNodeUtilization(Args, frozen=True):
    """Pods leave the nodes that are below a threshold, so that fewer nodes carry them.

    Attributes:
        thresholds: a node that is at or below all of them is underutilized.
        number_of_nodes: the strategy acts if more nodes than this are underutilized.
        eviction_modes: ``OnlyThresholdingResources``, or none.
        evictable_namespaces: pods in excluded namespaces are counted and stay.
    """

    NAME: ClassVar[str] = "HighNodeUtilization"

    thresholds: Thresholds = msgspec.field(default_factory=dict)
    number_of_nodes: Int64 = 0
    eviction_modes: tuple[str, ...] = ()
    evictable_namespaces: Choice = ALL

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from only_exclude(self.evictable_namespaces)
        yield from threshold_problems("thresholds", self.thresholds)
        yield from among("evictionModes", self.eviction_modes, ["OnlyThresholdingResources"])
