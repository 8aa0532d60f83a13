"""The inputs and the results of a round of LowNodeLoad, beside the rounds before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reserver.rebalance.anomaly import AnomalyCount
from reserver.rebalance.cluster_state import ListedNode, ListedPod
from reserver.rebalance.load import SmoothedLoad


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
        prod: the same for thresholds of prod pods.
        spared: pods that it would have moved, and why they stay.
        notes: nodes that were skipped, and those that are not hot for long enough.
    """

    anomalies: dict[str, AnomalyCount]
    prod: dict[str, AnomalyCount]
    spared: list[tuple[ListedPod, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
