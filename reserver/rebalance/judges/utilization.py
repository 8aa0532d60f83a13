"""LowNodeUtilization and HighNodeUtilization: pods leave nodes for what the nodes use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.snapshot import Rows
from reserver.rebalance.arguments.selecting import Choice
from reserver.rebalance.arguments.utilization import (
    HighNodeUtilization,
    LowNodeUtilization,
    Thresholds,
)
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.load import Load
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.plan import Why
from reserver.rebalance.plan_builder import NO_ROOM, Floats
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.usage import METRIC, offered

_PERCENT = 100.0


class _Usage:
    """What nodes use of the resources that have thresholds, as shares in percent.

    Attributes:
        shares: float array, rows × resources; changes as pods are moved.
        known: bool array, rows: the node's usage is known.
        tells_pods: it is known what single pods use; Prometheus says that of nodes alone.
    """

    def __init__(self, cycle: Cycle, resources: tuple[str, ...], load: Load | None = None) -> None:
        """Begin with what is really used; without `load`, with what is requested."""
        cluster, planned = cycle.stage.view.cluster, cycle.stage.planned
        snapshot = planned.snapshot
        self._cycle, self._resources, self._load = cycle, resources, load
        self._requested: dict[int, tuple[float, ...]] = {}
        self.tells_pods = METRIC not in resources
        self._offered: Floats = np.zeros((len(planned.closed), len(resources)))
        used = np.zeros_like(self._offered)
        self.known: Bools = cycle.seen.copy()
        for name, node in cluster.nodes.items():
            row = snapshot.row(name)
            if row is None:
                continue
            amounts: Mapping[str, float] = _requested(planned, name, resources)
            if load is not None:
                self.known[row] &= name in load.nodes
                real = load.nodes[name].usage if name in load.nodes else {}
                amounts = {"pods": amounts.get("pods", 0), **real}
            whole = offered(node)
            for at, resource in enumerate(resources):
                self._offered[row, at] = whole.get(resource, 0)
                used[row, at] = amounts.get(resource, 0)
        self.shares = self._share(used, self._offered)

    def of(self, amounts: tuple[float, ...], rows: Rows) -> Floats:
        """Return what amounts are on some rows, in percent: rows × resources."""
        offered = self._offered[rows]
        used = np.broadcast_to(np.array(amounts, dtype=np.float64), offered.shape)
        return self._share(used, offered)

    def amounts(self, number: int) -> tuple[float, ...]:
        """Return what a pod uses of each resource: what it requests where nobody knows more."""
        each = self._cycle.stage.pods[number]
        if self._load is not None:
            amounts = {**each.pod.requests, **self._load.pods.get(each.name, {})}
            return tuple(amounts.get(name, 0) for name in self._resources)
        requests = each.pod.requests
        known = self._requested.get(id(requests))  # Pods of a template share them.
        if known is None:
            known = tuple(requests.get(name, 0) for name in self._resources)
            self._requested[id(requests)] = known
        return known

    def move(self, number: int, source: int, target: int) -> None:
        """Count what a pod uses on another node from now on."""
        shares = self.of(self.amounts(number), np.array([source, target]))
        self.shares[source] -= shares[0]
        self.shares[target] += shares[1]

    @staticmethod
    def _share(used: Floats, offered: Floats) -> Floats:
        shares: Floats = np.divide(used, offered, out=np.zeros_like(offered), where=offered > 0)
        return shares * _PERCENT


def _requested(
    planned: PlanningSnapshot, node: str, resources: tuple[str, ...]
) -> dict[str, float]:
    """Return what the pods of a node request."""
    amounts = planned.snapshot.amounts
    return {resource: amounts(node, resource).requested for resource in resources}


def low_node_utilization(cycle: Cycle, args: LowNodeUtilization) -> None:
    """Move pods from nodes above the target thresholds to nodes below the thresholds.

    A node takes pods only as long as it stays below the target thresholds itself: what would make
    it one that pods leave does not go there.
    """
    resources = tuple(args.thresholds)
    source = source_of(args)
    if source is not None and source not in cycle.real.loads:
        cycle.stage.notes.append(f"{args.NAME} is not judged: what is used is not known")
        return
    usage = _Usage(cycle, resources, cycle.real.loads[source] if source else None)
    _name_unknown(cycle, usage)
    low, high = _bounds(usage, args)
    under = usage.known & np.all(usage.shares <= low, axis=1)
    over = usage.known & ~under & np.any(usage.shares > high, axis=1)
    count = np.count_nonzero(under)
    if not count or count <= args.number_of_nodes or count == usage.known.sum():
        return
    balance = _Balance(cycle, args, usage, under, high)
    rows = np.flatnonzero(over)
    for row in rows[np.lexsort((rows, -usage.shares[rows].max(axis=1, initial=0.0)))]:
        balance.relieve(int(row))


class _Balance:
    """LowNodeUtilization's nodes, and pods on their way from one to another."""

    def __init__(
        self, cycle: Cycle, args: LowNodeUtilization, usage: _Usage, under: Bools, high: Floats
    ) -> None:
        self._cycle, self._args, self._usage = cycle, args, usage
        self._takers, self._high = np.flatnonzero(under), high
        self._on = cycle.stage.planned.by_row()
        self._looked_at = cycle.chosen(Choice(exclude=args.exclude_namespaces))
        # The room of nodes that take pods only shrinks: what finds none will find none later.
        self._hopeless: set[object] = set()

    def relieve(self, row: int) -> None:
        """Move pods from a node until it is no longer above the target thresholds."""
        planned, usage, args = self._cycle.stage.planned, self._usage, self._args
        left = args.most_per_node
        if left is None and not usage.tells_pods:
            left = 1
        if left == 0:
            return
        why = self._why(row)
        on = self._on[row]
        for number in self._cycle.in_order(on[self._looked_at[on]]):
            if not self._send(number, why):
                continue
            usage.move(number, row, int(planned.rows[number]))
            left = None if left is None else left - 1
            if left == 0 or not np.any(usage.shares[row] > self._high[row]):
                return

    def _why(self, row: int) -> Why:
        node = self._cycle.stage.planned.snapshot.name_of(row)
        shown = _shown(self._usage, row, tuple(self._args.thresholds))
        reason = f"{node} uses {shown}, above the thresholds"
        return self._cycle.why(reason, f"{node} comes nearer to the target thresholds")

    def _send(self, number: int, why: Why) -> bool:
        cycle, usage = self._cycle, self._usage
        each = cycle.stage.pods[number]
        amounts = usage.amounts(number)
        kind = cycle.stage.planned.kind(number), amounts
        if kind in self._hopeless or amounts in self._hopeless:
            cycle.stage.keep(each, why, lambda: cycle.protection(number) or NO_ROOM)
            return False
        rows = self._takers
        after = usage.shares[rows] + usage.of(amounts, rows)
        fine = np.all(after <= self._high[rows], axis=1)
        accept, score = np.zeros(len(self._high), dtype=np.bool_), np.zeros(len(self._high))
        accept[rows[fine]] = True
        score[rows] = after.max(axis=1)
        if cycle.send(number, accept, why, score):
            return True
        if not cycle.protection(number) and not cycle.stage.refusal(each):
            self._hopeless.add(kind if fine.any() else amounts)
        return False


def high_node_utilization(cycle: Cycle, args: HighNodeUtilization) -> None:
    """Empty nodes below the thresholds into nodes above, if all their pods that may find room.

    To move only some of them would cost moves, and spare no node.
    """
    resources = tuple(args.thresholds)
    usage = _Usage(cycle, resources)
    limits = np.array([args.thresholds[name] for name in resources])
    under = usage.known & np.all(usage.shares <= limits, axis=1)
    count = np.count_nonzero(under)
    if not count or count <= args.number_of_nodes or count == usage.known.sum():
        return
    stage, planned = cycle.stage, cycle.stage.planned
    rows = np.flatnonzero(under)
    for row in rows[np.lexsort((rows, usage.shares[rows].max(axis=1, initial=0.0)))]:
        leaving = [n for n in cycle.in_order(planned.on(int(row))) if _leaves(cycle, args, n)]
        numbers = sorted(leaving, key=lambda number: -int(planned.requests[number].max()))
        node = planned.snapshot.name_of(int(row))
        reason = f"{node} uses {_shown(usage, int(row), resources)}, below the thresholds"
        why = cycle.why(reason, f"{node} is emptied")
        protected = [number for number in numbers if cycle.protection(number)]
        mark = stage.mark()
        if protected or not all(_send_on(cycle, number, ~under, why) for number in numbers):
            stage.back(mark)
        for number in numbers:
            reason = f"not all pods of {node} find room on nodes that are in use"
            stage.keep(stage.pods[number], why, cycle.protection(number) or reason)


def _send_on(cycle: Cycle, number: int, accept: Bools, why: Why) -> bool:
    """Move a pod to the fullest node that has room."""
    return cycle.send(number, accept, why, -cycle.stage.fullness)


def _leaves(cycle: Cycle, args: HighNodeUtilization, number: int) -> bool:
    each = cycle.stage.pods[number]
    if cycle.stage.planned.stays_behind[number] or each.name.namespace in args.exclude_namespaces:
        return False
    return not args.only_thresholding_resources or bool(each.named & args.thresholds.keys())


def _bounds(usage: _Usage, args: LowNodeUtilization) -> tuple[Floats, Floats]:
    """Return the thresholds of each row: rows × resources."""
    low, high = (_row(each, args) for each in (args.thresholds, args.target_thresholds))
    if args.use_deviation_thresholds:
        mean = usage.shares[usage.known].mean(axis=0) if usage.known.any() else 0.0
        low, high = np.clip(mean - low, 0, _PERCENT), np.clip(mean + high, 0, _PERCENT)
    shape = usage.shares.shape
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def _row(thresholds: Thresholds, args: LowNodeUtilization) -> Floats:
    return np.array([thresholds[name] for name in args.thresholds], dtype=np.float64)


def _name_unknown(cycle: Cycle, usage: _Usage) -> None:
    snapshot = cycle.stage.planned.snapshot
    rows: Rows = np.flatnonzero(cycle.seen & ~usage.known)
    cycle.stage.notes += [
        f"{cycle.strategy} skips {snapshot.name_of(int(row))}: it has no metrics" for row in rows
    ]


def _shown(usage: _Usage, row: int, resources: tuple[str, ...]) -> str:
    return ", ".join(
        f"{share:.0f} % of {name}" for name, share in zip(resources, usage.shares[row], strict=True)
    )
