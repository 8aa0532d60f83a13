"""How much of nodes is to be used, as LowNodeUtilization and HighNodeUtilization have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

Thresholds = Mapping[str, float]
"""Percentages of what a node has to offer, by resource; 0 to 100."""


class UsageSource(StrEnum):
    """The source of a node's usage."""

    REQUESTS = "requests"
    """What the pods request."""

    KUBERNETES = "KubernetesMetrics"
    """metrics.k8s.io."""

    PROMETHEUS = "Prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeUtilization:
    """Pods move from nodes above a threshold to those below another.

    Attributes:
        thresholds: a node that is at or below all of them is underutilized.
        target_thresholds: one that is above any of them is overutilized; the same resources.
        use_deviation_thresholds: thresholds are distances from the mean of all nodes.
        number_of_nodes: it acts if more nodes than so many are underutilized.
        usage: where it reads what is used.
        query: of Prometheus, for a share of 1 for each node; only with that source.
        exclude_namespaces: pods there are counted and stay.
        most_per_node: evictions from one node in a cycle; None for no such bound.
    """

    NAME: ClassVar = "LowNodeUtilization"

    thresholds: Thresholds
    target_thresholds: Thresholds
    use_deviation_thresholds: bool = False
    number_of_nodes: int = 0
    usage: UsageSource = UsageSource.REQUESTS
    query: str = ""
    exclude_namespaces: frozenset[str] = frozenset()
    most_per_node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HighNodeUtilization:
    """Pods leave the nodes that are below a threshold, so that fewer nodes carry them.

    Attributes:
        thresholds: a node that is at or below all of them is underutilized.
        number_of_nodes: it acts if more nodes than so many are underutilized.
        only_thresholding_resources: only pods leave that request a resource with a threshold.
        exclude_namespaces: pods there are counted and stay.
    """

    NAME: ClassVar = "HighNodeUtilization"

    thresholds: Thresholds
    number_of_nodes: int = 0
    only_thresholding_resources: bool = False
    exclude_namespaces: frozenset[str] = frozenset()
