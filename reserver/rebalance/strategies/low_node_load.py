"""LowNodeLoad: pods leave nodes whose real load is high for nodes where it is low.

The rules follow koord-descheduler (pkg/descheduler/framework/plugins/loadaware), with these
differences: the load of a moved pod counts on its new node at once (`rebalance.load`), and the pod
stays there for a while; a pod that does not use the resource its node is short of stays, too; nodes
that take load are filled evenly, and names break ties. Thresholds of prod pods are judged after the
others, and a node that takes a prod pod stays below both.

Upstream has no such strategy, so only plans have it. The strategy moves its pods itself, to nodes
with room by `fit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.arguments.load import LowNodeLoad, NodePool
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.cluster_state import ListedNode, ListedPod
from reserver.rebalance.load_comparison import (
    BalanceInput,
    BalanceResult,
    Comparison,
)
from reserver.rebalance.measured_load import NO_ROUNDS, AnomalyCount, Rounds, source_of
from reserver.rebalance.node_load import NodeLoad, prod_usage, thresholded, weigh
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.planning_snapshot import NOWHERE
from reserver.rebalance.readings import Usage


def balance(
    args: LowNodeLoad, given: BalanceInput, rounds: Rounds = NO_ROUNDS
) -> tuple[BalanceResult, Rounds]:
    """Move pods from hot nodes to cool ones.

    Args:
        args: the arguments of the policy.
        given: the cluster, and the callback for each move.
        rounds: the state that the last round returned.
    """
    # A node whose metrics were missing for so long begins anew, however far apart rounds are.
    oldest = min(rounds.at, given.now - args.detector_cache_timeout_s)
    found = BalanceResult(_since(oldest, rounds.anomalies), _since(oldest, rounds.prod))
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
    return found, Rounds(found.anomalies, given.now, found.prod)


def _since(oldest: float, counts: Mapping[str, AnomalyCount]) -> dict[str, AnomalyCount]:
    return {node: count for node, count in counts.items() if count.seen_at >= oldest}


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
    whole = {node.name: node for node in measured}
    part = _prod_loads(pool, measured, given, found)
    hot = [node for node in measured if node.exceeded and not node.is_low]
    names = {node.name for node in hot}
    prod_hot = [node for node in part.values() if node.exceeded and node.name not in names]
    prod_names = {node.name for node in prod_hot}
    low = [node for node in measured if node.is_low and node.name not in prod_names]
    compare = partial(Comparison, args=args, given=given, found=found)
    compare(pool=pool, nodes=whole, beside=part, counts=found.anomalies).relieve(low, hot)
    if pool.prod is not None:
        prod_low = [
            node
            for node in part.values()
            if node.is_low and node.name not in names and node.name not in prod_names
        ]
        prod = compare(pool=pool.prod, nodes=part, beside=whole, counts=found.prod, is_prod=True)
        prod.relieve(prod_low, prod_hot)
    return names | prod_names


def _prod_loads(
    pool: NodePool, measured: Iterable[NodeLoad], given: BalanceInput, found: BalanceResult
) -> dict[str, NodeLoad]:
    """Return what prod pods use of each node, as far as anybody asks and knows."""
    if pool.prod is None:
        return {}
    resources = thresholded(pool.prod)
    nodes, skipped = weigh(
        [node.node for node in measured],
        pool.prod,
        lambda node: prod_usage(given.pods.get(node.name, ()), given.load, resources),
    )
    found.notes += skipped
    return {node.name: node for node in nodes}


def _usage(
    node: ListedNode, args: LowNodeLoad, given: BalanceInput, resources: Iterable[str]
) -> Usage | str:
    """Return a node's usage of some resources, or why the usage is unknown."""
    known = given.load.nodes.get(node.name)
    if known is None:
        return "it has no metrics"
    age_s = abs(given.now - known.at)  # After the clock was set back, they are of any age.
    if 0 < args.node_metric_expiration_seconds <= age_s:
        return f"its metrics are {age_s:.0f} seconds old"
    running = sum(not pod.pod.finished for pod in given.pods.get(node.name, ()))
    usage = {**known.usage, "pods": running}
    missing = [each for each in resources if each not in usage]
    if missing:
        return f"its metrics do not say how much {', '.join(missing)} it uses"
    return {each: float(round(usage[each])) for each in resources}


def find(args: LowNodeLoad, state: PlanState) -> Batches:
    """Move pods from nodes whose measured load is high to nodes where it is low; yield none."""
    builder, given, source = state.builder, state.given, source_of(args)
    if source is None or source not in given.loads:
        builder.notes.append(f"{args.NAME} does nothing: usage is unknown")
        return iter(())
    planned, leaving = state.planned, _Leaving(state)
    nodes = [
        node
        for name, node in sorted(state.index.cluster.nodes.items())
        if (row := planned.snapshot.row(name)) is not None and state.looked_at[row]
    ]
    found, after = balance(
        args,
        BalanceInput(
            nodes=nodes,
            pods=state.index.cluster.by_node,
            load=given.loads[source],
            now=given.now,
            may_leave=leaving.may_leave,
            fits=leaving.fits,
            evict=leaving.evict,
            least_gain=given.least_gain,
        ),
        given.rounds.get(state.profile, NO_ROUNDS),
    )
    state.rounds[state.profile] = after
    builder.notes += found.notes
    for pod, why in found.spared:
        builder.keep(leaving.numbers[pod.pod.uid], state.why("its node is overutilized"), why)
    return iter(())


class _Leaving:
    """Finds pods that may leave, and their targets, one by one.

    Attributes:
        numbers: the numbers of the pods, by UID.
    """

    def __init__(self, state: PlanState) -> None:
        self._state = state
        self.numbers = {pod.uid: number for number, pod in enumerate(state.planned.pods)}
        self._number = -1
        self._targets: Bools = np.zeros(0, dtype=np.bool_)

    def may_leave(self, pod: ListedPod) -> bool:
        number, state = self.numbers[pod.pod.uid], self._state
        is_there = state.rows[number] != NOWHERE and not state.has_left(number)
        return is_there and not state.protection(number)

    def fits(self, pod: ListedPod, node: str) -> bool:
        planned = self._state.planned
        number, row = self.numbers[pod.pod.uid], planned.snapshot.row(node)
        if self._number != number:
            self._number, self._targets = number, planned.targets(number) & self._state.offered
        return row is not None and bool(self._targets[row])

    def evict(self, pod: ListedPod, target: str | None, reason: str, gain: float | None) -> bool:
        state = self._state
        accept = np.ones(len(state.offered), dtype=np.bool_)
        if target is not None:
            accept[:] = False
            accept[state.planned.snapshot.row(target)] = True
        self._number = -1  # Where there is room may be different now.
        number = self.numbers[pod.pod.uid]
        gains = None if gain is None else np.full(len(accept), gain)
        state.move(Candidate(number, reason, accept=accept, gain=gains))
        return state.has_left(number)
