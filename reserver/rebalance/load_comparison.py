"""Moves pods from the hot nodes of a comparison to its low ones: of all pods, or of prod pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from reserver.cluster.labels import integer
from reserver.k8s.objects.pod_annotations import COST_ANNOTATION
from reserver.rebalance.arguments.load import LowNodeLoad, NodePool
from reserver.rebalance.cluster_state import ListedNode, ListedPod
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import AnomalyCount, counted
from reserver.rebalance.node_load import Destinations, NodeLoad, is_prod, thresholded
from reserver.rebalance.readings import Usage

_QOS = {"BestEffort": 1, "Burstable": 2, "Guaranteed": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceInput:
    """The inputs and limits of a round.

    Attributes:
        nodes: the nodes that the policy selects.
        pods: pods on nodes, by the node's name.
        load: usage of nodes and pods.
        now: unix seconds.
        may_leave: whether a pod may be evicted.
        fits: whether a pod would be placed on a node.
        evict: makes a move, with its target, its reason and its gain (None: unknown); returns False
            if a limit forbids the move.
        least_gain: the smallest gain of a move, in percentage points; 0 for any.
    """

    nodes: Sequence[ListedNode]
    pods: Mapping[str, Sequence[ListedPod]]
    load: SmoothedLoad
    now: float
    may_leave: Callable[[ListedPod], bool]
    fits: Callable[[ListedPod, str], bool]
    evict: Callable[[ListedPod, str | None, str, float | None], bool]
    least_gain: float = 0.0


@dataclass(slots=True)
class BalanceResult:
    """The findings of a round, without the moves.

    Attributes:
        anomalies: consecutive hot rounds for the next round, by node.
        prod: the same for thresholds of prod pods.
        spared: pods that were candidates and stay, each with the reason.
        notes: skipped nodes, and nodes that have not been hot for long enough.
    """

    anomalies: dict[str, AnomalyCount]
    prod: dict[str, AnomalyCount]
    spared: list[tuple[ListedPod, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison with thresholds: the use of all pods of nodes, or of prod pods.

    Attributes:
        pool: the thresholds.
        nodes: by name.
        beside: the nodes of the other comparison, which a move changes as well.
        counts: the rounds in which its nodes were hot.
        is_prod: only prod pods count, and leave.
    """

    args: LowNodeLoad
    given: BalanceInput
    found: BalanceResult
    pool: NodePool
    nodes: Mapping[str, NodeLoad]
    beside: Mapping[str, NodeLoad]
    counts: dict[str, AnomalyCount]
    is_prod: bool = False

    def relieve(self, low: Sequence[NodeLoad], hot: Sequence[NodeLoad]) -> None:
        """Move pods from hot nodes to low ones."""
        lasting = self._lasting(hot)
        # `numberOfNodes` comes after the count of rounds: it is of nodes, not of decisions.
        if not low or len(low) <= self.args.number_of_nodes or not lasting:
            return
        coming = self.given.load.on_the_way
        room = {
            each: sum(self._room(node, each) for node in low) - coming.get(each, 0.0)
            for each in thresholded(self.pool)
        }
        weights = self.pool.resource_weights
        lasting.sort(key=lambda node: (-node.score(weights), node.name))
        destinations = Destinations(low, room, weights)
        for node in lasting:
            self._relieve(node, destinations)
            if not node.exceeded:
                self.counts.pop(node.name, None)

    def _room(self, node: NodeLoad, resource: str) -> float:
        """Return how much more a node takes; of prod pods no more than of all."""
        both = (node, self.beside[node.name]) if self.is_prod else (node,)
        return min(each.high[resource] - each.usage[resource] for each in both)

    def _lasting(self, hot: Sequence[NodeLoad]) -> list[NodeLoad]:
        """Count this round, and return the nodes that are hot for long enough."""
        condition, counts = self.pool.anomaly_condition, self.counts
        if condition.consecutive_abnormalities <= 1:
            return list(hot)
        names = {node.name for node in hot}
        for node in self.nodes.values():
            before = counts.pop(node.name, AnomalyCount())
            if node.name in names or not node.is_low:
                count = counted(before, condition, self.given.now, is_hot=node.name in names)
                if count.hot or count.until is not None:
                    counts[node.name] = count
        self.found.notes.extend(
            f"LowNodeLoad waits: node {node.name} was hot for {counts[node.name].hot} rounds "
            f"in a row, and moves begin after {condition.consecutive_abnormalities}"
            for node in hot
            if counts[node.name].until is None
        )
        return [node for node in hot if counts[node.name].until is not None]

    def _relieve(self, node: NodeLoad, destinations: Destinations) -> None:
        """Move pods from one node until it is no longer hot, or no room is left."""
        args, given = self.args, self.given
        pods = filter(self._may_leave, given.pods.get(node.name, ()))
        for pod in self._in_order(pods, node):
            short = node.exceeded
            if not short or not destinations.have_room:
                return
            usage = {**given.load.pods[pod.name], "pods": 1.0}
            if not any(usage.get(each) for each in short):
                continue
            fits = partial(self._fits, pod, usage)
            target = destinations.target(usage, fits) if args.node_fit else None
            gain, why = destinations.gain(usage, node, target), ""
            if args.node_fit and target is None:
                why = "no node that takes load has room for it"
            elif gain is not None and given.least_gain and gain < given.least_gain:
                why = f"it would gain {gain:.1f} points, less than {given.least_gain:g}"
            elif args.dry_run:
                why = "LowNodeLoad is set to dryRun"
            elif given.evict(pod, target, self._reason(node, short), gain):
                destinations.take(usage, target)
                node.take(usage, -1)
                self._take_beside(pod, usage, node.name, target)
            if why:
                self.found.spared.append((pod, why))

    def _fits(self, pod: ListedPod, usage: Usage, target: str) -> bool:
        """Return whether a node has room for a pod, and as a whole stays below its thresholds."""
        is_cool = not self.is_prod or self.beside[target].has_room(usage)
        return is_cool and self.given.fits(pod, target)

    def _take_beside(self, pod: ListedPod, usage: Usage, source: str, target: str | None) -> None:
        """Count a move in the other comparison, too."""
        if self.is_prod or is_prod(pod):
            for name, sign in ((source, -1), (target, 1)):
                if (node := self.beside.get(name or "")) is not None:
                    node.take(usage, sign)

    def _may_leave(self, pod: ListedPod) -> bool:
        args, load = self.args, self.given.load
        is_selected = not args.pod_selectors or any(
            selector.matches(pod.pod.labels) for selector in args.pod_selectors
        )
        return (
            pod.name in load.pods
            and pod.pod.uid not in load.moved
            and not pod.pod.finished
            and is_selected
            and (not self.is_prod or is_prod(pod))
            and args.evictable_namespaces.has(pod.name.namespace)
            and self.given.may_leave(pod)
        )

    def _in_order(self, pods: Iterable[ListedPod], node: NodeLoad) -> list[ListedPod]:
        """Return pods in order of eviction: the least important first, then by greatest relief."""
        above = {each: node.usage[each] - node.high[each] for each in node.exceeded}
        weights = {each: self.pool.resource_weights.get(each, 1) for each in above}

        def relief(pod: ListedPod) -> float:
            usage = {**self.given.load.pods[pod.name], "pods": 1.0}
            shares = {each: min(1.0, usage.get(each, 0.0) / above[each]) for each in above}
            return sum(share * weights[each] for each, share in shares.items())

        return sorted(
            pods,
            key=lambda pod: (
                pod.priority or 0,
                _QOS.get(pod.qos, 0),
                integer(pod.annotations.get(COST_ANNOTATION)) or 0,
                -relief(pod),
                -pod.created,
                pod.name,
            ),
        )

    def _reason(self, node: NodeLoad, short: Iterable[str]) -> str:
        prod = "prod " if self.is_prod else ""
        parts = (
            f"{prod}{each} usage({node.percent(each):.2f}%)>"
            f"threshold({100 * node.high[each] / node.node.offered[each]:.2f}%)"
            for each in short
            if node.node.offered.get(each)
        )
        return f"node is overutilized, {', '.join(parts)}"
