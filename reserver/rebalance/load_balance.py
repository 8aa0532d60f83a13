"""LowNodeLoad: pods leave nodes whose real load is high for nodes where it is low.

The rules are those of koord-descheduler (pkg/descheduler/framework/plugins/loadaware), with these
differences: the load of a pod that has moved counts at once where it goes (`rebalance.load`), and
it stays there for a while; a pod that does not use what its node is short of stays, too; the nodes
that take load are filled evenly, and ties are broken by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from reserver.cluster.labels import integer
from reserver.rebalance.anomaly import NO_ROUNDS, AnomalyCount, Rounds, counted
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad, NodePool
from reserver.rebalance.cluster_state import ListedNode, ListedPod
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.node_load import Destinations, NodeLoad, thresholded, weigh
from reserver.rebalance.readings import Usage

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_QOS = {"BestEffort": 1, "Burstable": 2, "Guaranteed": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceInput:
    """The inputs and limits of a round.

    Attributes:
        nodes: those that the policy shows.
        pods: pods on nodes, by the node's name.
        load: what they use.
        now: unix seconds.
        may_leave: whether a pod may be evicted.
        fits: whether a pod would be placed on a node.
        evict: makes a move, with its target, its reason and its gain, None if that is not known;
            returns False where a limit forbids it.
        least_gain: what a move gains at least, in percentage points; 0 for any.
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
    """The findings of a round, beside the moves.

    Attributes:
        anomalies: what the next round is to remember, by node.
        spared: pods that it would have moved, and why they stay.
        notes: nodes that were skipped, and those that are not hot for long enough.
    """

    anomalies: dict[str, AnomalyCount]
    spared: list[tuple[ListedPod, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def balance(
    args: LowNodeLoad, given: BalanceInput, rounds: Rounds = NO_ROUNDS
) -> tuple[BalanceResult, Rounds]:
    """Move pods from hot nodes to cool ones.

    Args:
        args: the policy's.
        given: what to look at, and what is called for each move.
        rounds: what the round before has returned.
    """
    # A node whose metrics were missing for so long begins anew, however far apart rounds are.
    oldest = min(rounds.at, given.now - args.detector_cache_timeout_s)
    found = BalanceResult(
        {node: count for node, count in rounds.anomalies.items() if count.seen_at >= oldest}
    )
    if args.paused:
        found.notes.append("LowNodeLoad is paused")
        return found, Rounds({}, given.now)
    claimed: set[str] = set()
    for pool in args.node_pools:
        nodes = [
            node
            for node in given.nodes
            if node.name not in claimed and pool.node_selector.matches(node.node.labels)
        ]
        claimed |= _balance_pool(args, pool, nodes, given, found)
    return found, Rounds(found.anomalies, given.now)


def _balance_pool(
    args: LowNodeLoad,
    pool: NodePool,
    nodes: Sequence[ListedNode],
    given: BalanceInput,
    found: BalanceResult,
) -> set[str]:
    """Balance one pool; return its hot nodes."""
    resources = thresholded(pool)
    measured, skipped = weigh(nodes, pool, lambda node: _usage(node, args, given, resources))
    found.notes += skipped
    low = [node for node in measured if node.is_low]
    hot = [node for node in measured if node.exceeded and not node.is_low]
    lasting = _lasting(pool.anomaly_condition, measured, hot, given.now, found)
    # `numberOfNodes` and the like come after the count of rounds: it is of nodes, not of decisions.
    if not low or len(low) <= args.number_of_nodes or not lasting:
        return {node.name for node in hot}
    room = {
        each: sum(node.high[each] - node.usage[each] for node in low)
        - given.load.on_the_way.get(each, 0.0)
        for each in resources
    }
    lasting.sort(key=lambda node: (-node.score(pool.resource_weights), node.name))
    destinations = Destinations(low, room, pool.resource_weights)
    for node in lasting:
        _relieve(node, destinations, args, pool, given, found)
        if not node.exceeded:
            found.anomalies.pop(node.name, None)
    return {node.name for node in hot}


def _usage(
    node: ListedNode, args: LowNodeLoad, given: BalanceInput, resources: Iterable[str]
) -> Usage | str:
    """Return what a node uses of some resources, or why that is not known."""
    known = given.load.nodes.get(node.name)
    if known is None:
        return "it has no metrics"
    age_s = given.now - known.at
    if 0 < args.node_metric_expiration_seconds <= age_s:
        return f"its metrics are {age_s:.0f} seconds old"
    running = sum(not pod.pod.finished for pod in given.pods.get(node.name, ()))
    usage = {**known.usage, "pods": running}
    missing = [each for each in resources if each not in usage]
    if missing:
        return f"its metrics do not say how much {', '.join(missing)} it uses"
    return {each: float(round(usage[each])) for each in resources}


def _lasting(
    condition: AnomalyCondition,
    measured: Iterable[NodeLoad],
    hot: Sequence[NodeLoad],
    now: float,
    found: BalanceResult,
) -> list[NodeLoad]:
    """Count this round, and return the nodes that are hot for long enough."""
    if condition.consecutive_abnormalities <= 1:
        return list(hot)
    names = {node.name for node in hot}
    for node in measured:
        before = found.anomalies.pop(node.name, AnomalyCount())
        if not node.is_low:
            count = counted(before, condition, now, is_hot=node.name in names)
            if count.hot or count.until is not None:
                found.anomalies[node.name] = count
    lasting = [node for node in hot if found.anomalies[node.name].until is not None]
    found.notes.extend(
        f"LowNodeLoad waits: node {node.name} was hot for {found.anomalies[node.name].hot} rounds "
        f"in a row, and moves begin after {condition.consecutive_abnormalities}"
        for node in hot
        if found.anomalies[node.name].until is None
    )
    return lasting


def _relieve(
    node: NodeLoad,
    destinations: Destinations,
    args: LowNodeLoad,
    pool: NodePool,
    given: BalanceInput,
    found: BalanceResult,
) -> None:
    """Move pods from one node until it is no longer hot, or no room is left."""
    pods = [pod for pod in given.pods.get(node.name, ()) if _may_leave(pod, args, given)]
    for pod in _in_order(pods, node, pool, given.load):
        short = node.exceeded
        if not short or not destinations.have_room:
            return
        usage = {**given.load.pods[pod.name], "pods": 1.0}
        if not any(usage.get(each) for each in short):
            continue
        target = destinations.target(usage, partial(given.fits, pod)) if args.node_fit else None
        gain, why = destinations.gain(usage, node, target), ""
        if args.node_fit and target is None:
            why = "no node that takes load has room for it"
        elif gain is not None and given.least_gain and gain < given.least_gain:
            why = f"it would gain {gain:.1f} points, less than {given.least_gain:g}"
        elif args.dry_run:
            why = "LowNodeLoad is set to dryRun"
        elif given.evict(pod, target, _reason(node, short), gain):
            destinations.take(usage, target)
            node.take(usage, -1)
        if why:
            found.spared.append((pod, why))


def _may_leave(pod: ListedPod, args: LowNodeLoad, given: BalanceInput) -> bool:
    is_selected = not args.pod_selectors or any(
        selector.matches(pod.pod.labels) for selector in args.pod_selectors
    )
    return (
        pod.name in given.load.pods
        and pod.pod.uid not in given.load.moved
        and not pod.pod.finished
        and is_selected
        and args.evictable_namespaces.has(pod.name.namespace)
        and given.may_leave(pod)
    )


def _in_order(
    pods: Iterable[ListedPod], node: NodeLoad, pool: NodePool, load: SmoothedLoad
) -> list[ListedPod]:
    """Return pods as they leave: the least important first, then those that relieve most."""
    above = {each: node.usage[each] - node.high[each] for each in node.exceeded}
    weights = {each: pool.resource_weights.get(each, 1) for each in above}

    def relief(pod: ListedPod) -> float:
        usage = {**load.pods[pod.name], "pods": 1.0}
        return sum(min(1.0, usage.get(each, 0.0) / above[each]) * weights[each] for each in above)

    return sorted(
        pods,
        key=lambda pod: (
            pod.priority or 0,
            _QOS.get(pod.qos, 0),
            integer(pod.annotations.get(_DELETION_COST)) or 0,
            -relief(pod),
            -pod.created,
            pod.name,
        ),
    )


def _reason(node: NodeLoad, short: Iterable[str]) -> str:
    parts = (
        f"{each} usage({node.percent(each):.2f}%)>"
        f"threshold({100 * node.high[each] / node.node.offered[each]:.2f}%)"
        for each in short
        if node.node.offered.get(each)
    )
    return f"node is overutilized, {', '.join(parts)}"
