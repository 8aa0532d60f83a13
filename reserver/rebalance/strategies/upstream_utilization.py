"""LowNodeUtilization and HighNodeUtilization, pod by pod as upstream runs them.

The eviction is ``evictPodsFromSourceNodes`` in pkg/framework/plugins/nodeutilization. The room of
the nodes that take pods is one sum; nobody asks whether a single pod fits on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.arguments.base import Choice, Thresholds
from reserver.rebalance.arguments.utilization import HighNodeUtilization, LowNodeUtilization
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.cluster_state import Amounts
from reserver.rebalance.nodefit import tolerates
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.upstream_state import UpstreamState
from reserver.rebalance.usage import (
    Usage,
    capped,
    is_above,
    is_below,
    mean,
    percentages,
    shifted,
    usage_from,
)


@dataclass(slots=True, kw_only=True)
class _UsedNode:
    """A node with its usage and its limit.

    Attributes:
        used: the usage; falls as pods leave.
        most: the most usage of each resource.
    """

    row: int
    used: dict[str, int]
    most: Amounts

    @property
    def is_too_high(self) -> bool:
        """Whether more of some resource is used than may be."""
        return any(amount > self.most.get(name, 0) for name, amount in self.used.items())

    @property
    def total(self) -> int:
        """The sum of all amounts, by which nodes are sorted: in effect, of memory."""
        return sum(self.used.values())


_Nodes = tuple[list[_UsedNode], list[_UsedNode]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaving:
    """The sources and targets of evicted pods.

    Attributes:
        sources: nodes that pods leave, in order.
        targets: nodes that take the pods together.
        may_leave: whether an unprotected pod is considered.
        namespaces: the namespaces whose pods leave.
        goes_on: whether more pods leave a node, judged after each eviction.
        most_per_node: most evictions from one node; None for no bound.
        reason: the reason to leave.
    """

    sources: Sequence[_UsedNode]
    targets: Sequence[_UsedNode]
    may_leave: Callable[[int], bool]
    namespaces: Choice
    goes_on: Callable[[_UsedNode], bool]
    most_per_node: int | None
    reason: str


def _leave(leaving: _Leaving, state: UpstreamState, usage: Usage) -> Batches:
    """Yield pods one by one, node by node, the least important first."""
    index, evictor = state.index, state.evictor
    room = {
        name: sum(load.most[name] - load.used[name] for load in leaving.targets)
        for name in usage.names
    }
    taints = {index.nodes[load.row].taints for load in leaving.targets}
    for load in leaving.sources:
        pods = [p for p in index.listed(load.row) if evictor.allows(p) and leaving.may_leave(p)]
        if _is_over(leaving, load, room):
            continue
        count = 0
        for pod in index.least_first(pods):
            if leaving.most_per_node is not None and count >= leaving.most_per_node:
                break
            used = usage.of_pod(pod)
            if not _may_go(leaving, pod, taints, state) or (used is None and usage.can_tell_pods):
                continue
            yield [Candidate(pod, leaving.reason)]
            if not state.has_left(pod):
                continue
            count += 1
            if used is None:
                if leaving.most_per_node is None:
                    break
                continue
            _subtract(load.used, used)
            _subtract(room, used)
            if _is_over(leaving, load, room):
                break


def _is_over(leaving: _Leaving, load: _UsedNode, room: Amounts) -> bool:
    return not leaving.goes_on(load) or any(amount <= 0 for amount in room.values())


def _may_go(
    leaving: _Leaving, pod: int, taints: set[tuple[Taint, ...]], state: UpstreamState
) -> bool:
    tolerations = state.index.pods[pod].pod.constraints.tolerations
    return (
        any(_tolerates_all(tolerations, each) for each in taints)
        and leaving.namespaces.has(state.index.pods[pod].name.namespace)
        and state.evictor.confirms(pod)
    )


def _tolerates_all(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """Return whether all taints, of any effect, are tolerated by at least as many tolerations."""
    enough = len(tolerations) >= len(taints)
    return enough and all(tolerates(tolerations, taint) for taint in taints)


def _subtract(amounts: dict[str, int], used: Amounts) -> None:
    for name in amounts:
        amounts[name] -= 1 if name == "pods" else used.get(name, 0)


def _beyond(args: LowNodeUtilization, index: PodIndex, usage: Usage) -> _Nodes:
    """Return the nodes that are used too little and too much, the most used first.

    Raises:
        StrategyFailed: nobody knows how much a node is used.
    """
    rows = index.shown_rows()
    used = {row: usage.of_node(row) for row in rows}
    shares = {row: percentages(used[row], index.nodes[row]) for row in rows}
    low, high = _thresholds(args, list(shares.values()))
    under, over = [], []
    for row in rows:
        node = index.nodes[row]
        load = _UsedNode(row=row, used=used[row], most=capped(node, high, usage.names))
        if not node.node.unschedulable and is_below(shares[row], low):
            under.append(load)
        elif is_above(shares[row], high):
            over.append(load)
    over.sort(key=lambda load: -load.total)
    return under, over


def level(args: LowNodeUtilization, state: UpstreamState) -> Batches:
    """LowNodeUtilization: yield pods one by one.

    They leave the most used nodes while others have room below their target.
    """
    index = state.index
    usage = usage_from(args.usage, index, args.thresholds)
    under, over = _beyond(args, index, usage)
    if len(under) in {0, len(index.shown_rows())} or len(under) <= args.number_of_nodes:
        return
    leaving = _Leaving(
        sources=over,
        targets=under,
        may_leave=lambda _: True,
        namespaces=args.evictable_namespaces,
        goes_on=lambda load: load.is_too_high,
        most_per_node=args.eviction_limits.node,
        reason="its node is used above targetThresholds",
    )
    yield from _leave(leaving, state, usage)


def _thresholds(
    args: LowNodeUtilization, shares: list[dict[str, float]]
) -> tuple[Thresholds, Thresholds]:
    low, high = args.thresholds, args.target_thresholds
    if not args.use_deviation_thresholds:
        return low, high
    average = mean({name: each[name] for name in low if name in each} for each in shares)
    return shifted(average, low, -1), shifted(average, high, 1)


def _below(args: HighNodeUtilization, index: PodIndex, usage: Usage) -> _Nodes:
    """Return the underutilized nodes, the least used first, and the nodes that take pods."""
    under, others = [], []
    full = dict.fromkeys(args.thresholds, 100.0)
    for row in index.shown_rows():
        node, used = index.nodes[row], usage.of_node(row)
        load = _UsedNode(row=row, used=used, most=capped(node, full, usage.names))
        if is_below(percentages(used, node), args.thresholds):
            under.append(load)
        elif not node.node.unschedulable:
            others.append(load)
    under.sort(key=lambda load: load.total)
    return under, others


def empty(args: HighNodeUtilization, state: UpstreamState) -> Batches:
    """HighNodeUtilization: yield pods one by one.

    They leave the least used nodes while others have room.
    """
    index = state.index
    usage = Usage(index, args.thresholds)
    under, others = _below(args, index, usage)
    if not others or not under or len(under) <= args.number_of_nodes:
        return
    named = set(args.thresholds)
    leaving = _Leaving(
        sources=under,
        targets=others,
        may_leave=lambda pod: (
            not args.eviction_modes or not named.isdisjoint(index.pods[pod].named)
        ),
        namespaces=args.evictable_namespaces,
        goes_on=lambda _: True,
        most_per_node=None,
        reason="its node is used below thresholds",
    )
    yield from _leave(leaving, state, usage)
