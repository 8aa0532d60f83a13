"""LowNodeUtilization: pods leave nodes above a threshold for those below another."""

from __future__ import annotations

from typing import NamedTuple

from reserver.rebalance.arguments.base import Thresholds
from reserver.rebalance.arguments.utilization import LowNodeUtilization
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches
from reserver.rebalance.strategies.evict_until import Leaving, UsedNode, leave
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


class Classified(NamedTuple):
    """Nodes by how much they are used."""

    under: list[UsedNode]
    over: list[UsedNode]


def classify(args: LowNodeUtilization, index: PodIndex, usage: Usage) -> Classified:
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
        load = UsedNode(row=row, used=used[row], most=capped(node, high, usage.names))
        if not node.node.unschedulable and is_below(shares[row], low):
            under.append(load)
        elif is_above(shares[row], high):
            over.append(load)
    over.sort(key=lambda load: -load.total)
    return Classified(under, over)


def find(args: LowNodeUtilization, state: UpstreamState) -> Batches:
    """Yield pods one by one that leave the most used nodes while others have room below target."""
    index = state.index
    usage = usage_from(args.usage, index, args.thresholds)
    under, over = classify(args, index, usage)
    if len(under) in {0, len(index.shown_rows())} or len(under) <= args.number_of_nodes:
        return
    excluded = args.exclude_namespaces
    leaving = Leaving(
        sources=over,
        targets=under,
        may_leave=lambda _: True,
        is_excluded=lambda pod: index.pods[pod].name.namespace in excluded,
        goes_on=lambda load: load.is_too_high,
        most_per_node=args.most_per_node,
        reason="its node is used above targetThresholds",
    )
    yield from leave(leaving, state, usage)


def _thresholds(
    args: LowNodeUtilization, shares: list[dict[str, float]]
) -> tuple[Thresholds, Thresholds]:
    low, high = args.thresholds, args.target_thresholds
    if not args.use_deviation_thresholds:
        return low, high
    average = mean({name: each[name] for name in low if name in each} for each in shares)
    return shifted(average, low, -1), shifted(average, high, 1)
