"""Nodes with their load and their thresholds, in amounts of resources; and what prod pods use."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from reserver.rebalance.arguments.load import NodePool
from reserver.rebalance.cluster_state import ListedNode, ListedPod
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.readings import Usage

_ALL = 100.0


@dataclass(slots=True)
class NodeLoad:
    """A node with its load and its thresholds, in amounts.

    Attributes:
        node: the node.
        usage: its usage of the resources with thresholds; changes as pods move.
        low: the node takes load while no usage is above these amounts.
        high: the node is hot if any usage is above these amounts.
    """

    node: ListedNode
    usage: dict[str, float]
    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.node.name

    @property
    def exceeded(self) -> list[str]:
        """The resources of which it uses more than it should."""
        return [each for each, most in self.high.items() if self.usage[each] > most]

    @property
    def is_low(self) -> bool:
        """Whether it takes load."""
        is_below = all(self.usage[each] <= most for each, most in self.low.items())
        return is_below and not self.node.node.unschedulable

    def percent(self, resource: str) -> float:
        """Return the used share of its allocatable, in percent."""
        offered = self.node.offered.get(resource, 0)
        return _ALL * self.usage[resource] / offered if offered else 0.0

    def fullest(self, usage: Usage, sign: int) -> float:
        """Return the largest of its percentages, with so much more or, with the sign -1, less."""
        offered = self.node.offered
        return max(
            _ALL * (amount + sign * usage.get(each, 0.0)) / offered[each]
            if offered.get(each)
            else 0.0
            for each, amount in self.usage.items()
        )

    def score(self, weights: Mapping[str, int]) -> float:
        """Return how full it is: the weighted mean of its percentages."""
        measured = {each: weights.get(each, 1) for each in self.usage}
        total = sum(measured.values())
        if not total:
            return 0.0
        return sum(min(_ALL, self.percent(each)) * measured[each] for each in measured) / total

    def has_room(self, usage: Usage) -> bool:
        """Return whether it stays below its thresholds with so much more."""
        return all(
            self.usage[each] + usage.get(each, 0.0) <= most for each, most in self.high.items()
        )

    def take(self, usage: Usage, sign: int) -> None:
        """Count load that comes, or goes with the sign -1."""
        for each in self.usage:
            self.usage[each] += sign * usage.get(each, 0.0)


class Destinations:
    """The nodes that take load, the emptiest first, and how much of it they take together."""

    def __init__(
        self, nodes: Iterable[NodeLoad], room: dict[str, float], weights: Mapping[str, int]
    ) -> None:
        self._room = room
        self._weights = weights
        self._nodes = {node.name: node for node in nodes}
        self._order = sorted(map(self._rank, self._nodes.values()))

    @property
    def have_room(self) -> bool:
        """Whether they take any more of any resource."""
        return all(amount > 0 for amount in self._room.values())

    def target(self, usage: Usage, fits: Callable[[str], bool]) -> str | None:
        """Return the emptiest node that fits and stays below its thresholds with so much more."""
        for _, name in self._order:
            if self._nodes[name].has_room(usage) and fits(name):
                return name
        return None

    def gain(self, usage: Usage, source: NodeLoad, target: str | None) -> float | None:
        """Return by how many points the fuller one of two nodes is used less; None without both."""
        if target is None:
            return None
        nodes = ((source, -1), (self._nodes[target], 1))
        after = max(node.fullest(usage, sign) for node, sign in nodes)
        return source.fullest({}, 1) - after

    def take(self, usage: Usage, target: str | None) -> None:
        """Count load that goes to one of them."""
        for each in self._room:
            self._room[each] -= usage.get(each, 0.0)
        if target is not None:
            node = self._nodes[target]
            self._order.remove(self._rank(node))
            node.take(usage, 1)
            insort(self._order, self._rank(node))

    def _rank(self, node: NodeLoad) -> tuple[float, str]:
        return node.score(self._weights), node.name


def weigh(
    nodes: Iterable[ListedNode], pool: NodePool, usage_of: Callable[[ListedNode], Usage | str]
) -> tuple[list[NodeLoad], list[str]]:
    """Return the nodes whose load is known, with their thresholds, and why others are skipped.

    Args:
        nodes: the nodes of the pool.
        pool: the pool, with its thresholds.
        usage_of: returns a node's usage of the resources with thresholds, or why it is unknown.
    """
    measured, skipped = [], []
    for node in nodes:
        usage = usage_of(node)
        if isinstance(usage, str):
            skipped.append(f"LowNodeLoad skips node {node.name}: {usage}")
        else:
            measured.append(NodeLoad(node, dict(usage)))
    resources = thresholded(pool)
    means = {
        each: sum(node.percent(each) for node in measured) / max(1, len(measured))
        for each in resources
    }
    for known in measured:
        known.low = {each: _amount(known, pool, means, each, is_high=False) for each in resources}
        known.high = {each: _amount(known, pool, means, each, is_high=True) for each in resources}
    return measured, skipped


def thresholded(pool: NodePool) -> list[str]:
    """Return the resources that a pool has thresholds for."""
    return sorted(pool.low_thresholds.keys() | pool.high_thresholds.keys())


def _amount(
    node: NodeLoad, pool: NodePool, means: Mapping[str, float], resource: str, *, is_high: bool
) -> float:
    """Return a threshold of a node; all that it offers where there is none."""
    thresholds = pool.high_thresholds if is_high else pool.low_thresholds
    percent = thresholds.get(resource)
    if percent is None:
        percent = _ALL
    elif pool.use_deviation_thresholds:
        percent = _ALL if not percent else means[resource] + (percent if is_high else -percent)
    offered = node.node.offered.get(resource, 0)
    return float(int(min(_ALL, max(0.0, percent)) * 0.01 * offered))


_CLASS = "koordinator.sh/priority-class"
_QOS = "koordinator.sh/qosClass"
_PROD, _OTHERS = "koord-prod", frozenset({"koord-mid", "koord-batch", "koord-free"})
_PRIORITIES = range(9000, 10_000)
_OTHER_PRIORITIES = (range(7000, 8000), range(5000, 6000), range(3000, 4000))
_PROD_QOS = frozenset({"LSE", "LSR", "LS", "SYSTEM"})


def is_prod(pod: ListedPod) -> bool:
    """Return whether a pod is of the class prod (apis/extension/priority_utils.go).

    Its label decides, else its priority, else its QoS: all but BestEffort.
    """
    if (said := pod.pod.labels.get(_CLASS)) is not None:
        if said == _PROD or said in _OTHERS:
            return said == _PROD
    elif pod.priority in _PRIORITIES:
        return True
    elif any(pod.priority in each for each in _OTHER_PRIORITIES):
        return False
    qos = pod.pod.labels.get(_QOS, "")
    if qos in _PROD_QOS or qos == "BE":
        return qos != "BE"
    return pod.qos != "BestEffort"


def prod_usage(
    pods: Iterable[ListedPod], load: SmoothedLoad, resources: Collection[str]
) -> Usage | str:
    """Return the usage of a node's prod pods, or why the usage is unknown.

    A pod that is too young to have metrics counts as unused, as in Koordinator.
    """
    prod = [pod for pod in pods if not pod.pod.finished and is_prod(pod)]
    known = [load.pods[pod.name] for pod in prod if pod.name in load.pods]
    measured = [each for each in resources if each != "pods"]
    missing = [each for each in measured if not any(each in usage for usage in known)]
    if prod and missing:
        return f"its metrics do not say how much {', '.join(missing)} its prod pods use"
    totals = {each: sum(usage.get(each, 0.0) for usage in known) for each in measured}
    return {
        each: float(len(prod)) if each == "pods" else float(round(totals[each]))
        for each in resources
    }
