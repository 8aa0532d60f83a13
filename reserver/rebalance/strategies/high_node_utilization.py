"""HighNodeUtilization: pods leave the nodes below a threshold, so that fewer nodes carry them."""

from __future__ import annotations

from reserver.rebalance.arguments.utilization import HighNodeUtilization
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches
from reserver.rebalance.strategies.evict_until import Leaving, UsedNode, leave
from reserver.rebalance.strategies.low_node_utilization import Classified
from reserver.rebalance.upstream_state import UpstreamState
from reserver.rebalance.usage import Requested, Usage, capped, is_below, percentages


def classify(args: HighNodeUtilization, index: PodIndex, usage: Usage) -> Classified:
    """Return the nodes that are used too little, the least used first, and those that take pods."""
    under, others = [], []
    full = dict.fromkeys(args.thresholds, 100.0)
    for row in index.shown_rows():
        node, used = index.nodes[row], usage.of_node(row)
        load = UsedNode(row=row, used=used, most=capped(node, full, usage.names))
        if is_below(percentages(used, node), args.thresholds):
            under.append(load)
        elif not node.node.unschedulable:
            others.append(load)
    under.sort(key=lambda load: load.total)
    return Classified(under, others)


def find(args: HighNodeUtilization, state: UpstreamState) -> Batches:
    """Yield pods one by one that leave the least used nodes while others have room."""
    index = state.index
    usage = Requested(index, args.thresholds)
    under, others = classify(args, index, usage)
    if not others or not under or len(under) <= args.number_of_nodes:
        return
    named, excluded = set(args.thresholds), args.exclude_namespaces
    leaving = Leaving(
        sources=under,
        targets=others,
        may_leave=lambda pod: (
            not args.only_thresholding_resources or not named.isdisjoint(index.pods[pod].named)
        ),
        is_excluded=lambda pod: index.pods[pod].name.namespace in excluded,
        goes_on=lambda _: True,
        most_per_node=None,
        reason="its node is used below thresholds",
    )
    yield from leave(leaving, state, usage)
