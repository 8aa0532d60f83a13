"""Evicts pods from a node until it is used enough, for both utilization strategies.

That is ``evictPodsFromSourceNodes`` in pkg/framework/plugins/nodeutilization. The room of the nodes
that take pods is one sum; nobody asks whether a single pod fits on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reserver.cluster.constraints import Taint, Toleration
from reserver.rebalance.cluster_state import Amounts
from reserver.rebalance.nodefit import tolerates
from reserver.rebalance.strategies.candidate import Batches, Candidate
from reserver.rebalance.upstream_state import UpstreamState
from reserver.rebalance.usage import Usage


@dataclass(slots=True, kw_only=True)
class UsedNode:
    """A node, what is used of it, and how much may be.

    Attributes:
        used: what is used; goes down as pods leave.
        most: how much of each resource may be in use.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """The nodes that pods leave, and those that take them.

    Attributes:
        sources: pods leave these nodes, in order.
        targets: these take them together.
        may_leave: whether a pod is looked at, besides being protected by nothing.
        is_excluded: whether the namespace of a pod is excluded.
        goes_on: whether more pods leave a node, judged after each one.
        most_per_node: pods that leave one node; None for no bound.
        reason: why pods leave.
    """

    sources: Sequence[UsedNode]
    targets: Sequence[UsedNode]
    may_leave: Callable[[int], bool]
    is_excluded: Callable[[int], bool]
    goes_on: Callable[[UsedNode], bool]
    most_per_node: int | None
    reason: str


def leave(leaving: Leaving, state: UpstreamState, usage: Usage) -> Batches:
    """Yield pods one by one, node by node, those that are missed least first."""
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


def _is_over(leaving: Leaving, load: UsedNode, room: Amounts) -> bool:
    return not leaving.goes_on(load) or any(amount <= 0 for amount in room.values())


def _may_go(
    leaving: Leaving, pod: int, taints: set[tuple[Taint, ...]], state: UpstreamState
) -> bool:
    tolerations = state.index.pods[pod].pod.constraints.tolerations
    return (
        any(_tolerates_all(tolerations, each) for each in taints)
        and not leaving.is_excluded(pod)
        and state.evictor.confirms(pod)
    )


def _tolerates_all(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """Return whether all taints, of any effect, are tolerated by at least as many tolerations."""
    enough = len(tolerations) >= len(taints)
    return enough and all(tolerates(tolerations, taint) for taint in taints)


def _subtract(amounts: dict[str, int], used: Amounts) -> None:
    for name in amounts:
        amounts[name] -= 1 if name == "pods" else used.get(name, 0)
