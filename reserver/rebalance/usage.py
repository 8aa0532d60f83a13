"""The usage of nodes, by requests or by metrics, and the usage that a pod would free.

Amounts are in millicores of cpu and base units of all else, and for Prometheus in percent, as the
resource `METRIC`. The arithmetic is upstream's (pkg/framework/plugins/nodeutilization).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reserver.rebalance.arguments.base import Thresholds
from reserver.rebalance.arguments.utilization import METRIC, UsageSource
from reserver.rebalance.candidate import StrategyFailed
from reserver.rebalance.cluster_state import Amounts, ListedNode
from reserver.rebalance.pod_index import PodIndex

BASIC = ("cpu", "memory", "pods")

Percentages = Mapping[str, float]


class Usage:
    """The usage of nodes: requests of their pods, unless a subclass measures more.

    Attributes:
        names: the resources with thresholds, and the resources that every pod has.
        can_tell_pods: the usage of single pods is known.
    """

    can_tell_pods: bool = True

    def __init__(self, index: PodIndex, names: Iterable[str]) -> None:
        self._index = index
        self.names = tuple(dict.fromkeys((*names, *BASIC)))

    def of_node(self, row: int) -> dict[str, int]:
        """Return the usage of a node.

        Raises:
            StrategyFailed: the usage is unknown.
        """
        pods = self._index.listed(row)
        used = dict.fromkeys(self.names, 0)
        for pod in pods:
            requests = self._index.pods[pod].requests
            for name in self.names:
                used[name] += requests.get(name, 0)
        return used | {"pods": len(pods)}

    def of_pod(self, pod: int) -> Amounts | None:
        """Return the usage of a pod; None if unknown."""
        return self._index.pods[pod].requests


class Measured(Usage):
    """Usage as metrics.k8s.io reports it; the pods of a node are counted."""

    def of_node(self, row: int) -> dict[str, int]:
        """Return what metrics say of a node; its pods are counted."""
        name = self._index.nodes[row].name
        known = self._index.cluster.node_usage.get(name)
        if known is None:
            raise StrategyFailed(f"unable to find node {name!r} in the collected metrics")
        used = {**known, "pods": len(self._index.listed(row))}
        missing = [resource for resource in self.names if resource not in used]
        if missing:
            raise StrategyFailed(f"the metrics of node {name!r} do not have {missing[0]!r}")
        return {resource: used[resource] for resource in self.names}

    def of_pod(self, pod: int) -> Amounts | None:
        """Return the usage of all containers of a pod."""
        containers = self._index.cluster.pod_usage.get(self._index.pods[pod].name)
        wanted = [name for name in self.names if name != "pods"]
        if containers is None or any(name not in each for each in containers for name in wanted):
            return None
        return {name: sum(each[name] for each in containers) for name in wanted}


class Queried(Usage):
    """Usage by a query to Prometheus, in percent, for nodes only."""

    can_tell_pods = False

    def __init__(self, index: PodIndex) -> None:
        super().__init__(index, ())
        self.names = (METRIC,)

    def of_node(self, row: int) -> dict[str, int]:
        """Return the percentage of a node."""
        name = self._index.nodes[row].name
        known = self._index.cluster.node_usage.get(name, {})
        if METRIC not in known:
            raise StrategyFailed(f"unable to find metric entry for {name}")
        return {METRIC: known[METRIC]}

    def of_pod(self, pod: int) -> Amounts | None:  # noqa: ARG002 - the shape of the others
        """Return nothing."""
        return None


def usage_from(source: UsageSource, index: PodIndex, names: Iterable[str]) -> Usage:
    """Return where usage is read."""
    match source:
        case UsageSource.KUBERNETES:
            return Measured(index, names)
        case UsageSource.PROMETHEUS:
            return Queried(index)
    return Usage(index, names)


def offered(node: ListedNode) -> dict[str, int]:
    """Return the allocatable of a node, with 100 for the metric."""
    return {**node.offered, METRIC: 100}


def percentages(used: Amounts, node: ListedNode) -> dict[str, float]:
    """Return usage in percent of allocatable, without resources that the node does not offer."""
    total = offered(node)
    return {
        name: amount / total[name] * 100 if total[name] > 0 else 0.0
        for name, amount in used.items()
        if name in total
    }


def mean(nodes: Iterable[Percentages]) -> dict[str, float]:
    """Return the mean of each resource over the nodes that offer it."""
    values: dict[str, list[float]] = {}
    for node in nodes:
        for name, value in node.items():
            values.setdefault(name, []).append(value)
    return {name: sum(each) / len(each) for name, each in values.items()}


def shifted(average: Percentages, by: Thresholds, sign: int) -> dict[str, float]:
    """Return a mean with deviations added or taken away, from 0 to 100."""
    return {
        name: min(max(value + sign * by.get(name, 0.0), 0.0), 100.0)
        for name, value in average.items()
    }


def is_below(used: Percentages, thresholds: Thresholds) -> bool:
    """Return whether a node is at or below all thresholds."""
    return all(used.get(name, 0.0) <= most for name, most in thresholds.items())


def is_above(used: Percentages, thresholds: Thresholds) -> bool:
    """Return whether a node is above one of the thresholds."""
    return any(used.get(name, 0.0) > most for name, most in thresholds.items())


def capped(node: ListedNode, thresholds: Thresholds, names: Iterable[str]) -> dict[str, int]:
    """Return how much of each resource a node may have in use; all it offers without threshold."""
    total = offered(node)
    return {
        name: int(thresholds[name] * 0.01 * total[name])
        if name in thresholds and name in total
        else total.get(name, 0)
        for name in names
    }
