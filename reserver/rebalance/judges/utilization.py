"""LowNodeUtilization and HighNodeUtilization: pods leave nodes for what the nodes use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.snapshot import Rows
from reserver.rebalance.arguments import (
    HighNodeUtilization,
    LowNodeUtilization,
    Thresholds,
)
from reserver.rebalance.board import Board
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.load import Load
from reserver.rebalance.scene import Why
from reserver.rebalance.sources import source_of
from reserver.rebalance.stage import Floats
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
        inventory, board = cycle.stage.inventory, cycle.stage.scene.board
        snapshot = board.snapshot
        self._cycle, self._resources, self._load = cycle, resources, load
        self.tells_pods = METRIC not in resources
        self._offered: Floats = np.zeros((len(board.closed), len(resources)))
        used = np.zeros_like(self._offered)
        self.known: Bools = cycle.seen.copy()
        for name, node in inventory.nodes.items():
            row = snapshot.row(name)
            if row is None:
                continue
            amounts: Mapping[str, float] = _requested(board, name, resources)
            if load is not None:
                self.known[row] &= name in load.nodes
                real = load.nodes[name].usage if name in load.nodes else {}
                amounts = {"pods": amounts.get("pods", 0), **real}
            whole = offered(node)
            for at, resource in enumerate(resources):
                self._offered[row, at] = whole.get(resource, 0)
                used[row, at] = amounts.get(resource, 0)
        self.shares = self._share(used, self._offered)

    def of_pod(self, number: int) -> Floats:
        """Return what a pod uses, on each row, in percent: rows × resources.

        Where nobody knows what it really uses, that is what it requests.
        """
        each = self._cycle.stage.pods[number]
        amounts: Mapping[str, float] = each.pod.requests
        if self._load is not None:
            amounts = {**amounts, **self._load.pods.get(each.name, {})}
        used = np.array([amounts.get(name, 0) for name in self._resources], dtype=np.float64)
        return self._share(np.broadcast_to(used, self._offered.shape), self._offered)

    def move(self, number: int, source: int, target: int) -> None:
        """Count what a pod uses on another node from now on."""
        shares = self.of_pod(number)
        self.shares[source] -= shares[source]
        self.shares[target] += shares[target]

    @staticmethod
    def _share(used: Floats, offered: Floats) -> Floats:
        shares: Floats = np.divide(used, offered, out=np.zeros_like(offered), where=offered > 0)
        return shares * _PERCENT


def _requested(board: Board, node: str, resources: tuple[str, ...]) -> dict[str, float]:
    """Return what the pods of a node request."""
    amounts = board.snapshot.amounts
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
    board = cycle.stage.scene.board
    rows = np.flatnonzero(over)
    for row in rows[np.lexsort((rows, -usage.shares[rows].max(axis=1, initial=0.0)))]:
        left = args.most_per_node if usage.tells_pods or args.most_per_node is not None else 1
        for number in cycle.in_order(board.on(int(row))):
            if not np.any(usage.shares[row] > high[row]) or left == 0:
                break
            each = cycle.stage.pods[number]
            if each.name.namespace in args.exclude_namespaces:
                continue
            after = usage.shares + usage.of_pod(number)
            accept = under & np.all(after <= high, axis=1)
            why = cycle.why(
                f"{each.node} uses {_shown(usage, int(row), resources)}, above the thresholds",
                f"{each.node} comes nearer to the target thresholds",
            )
            if cycle.send(number, accept, why, after.max(axis=1)):
                usage.move(number, int(row), int(board.rows[number]))
                left = None if left is None else left - 1


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
    stage, board = cycle.stage, cycle.stage.scene.board
    rows = np.flatnonzero(under)
    for row in rows[np.lexsort((rows, usage.shares[rows].max(axis=1, initial=0.0)))]:
        leaving = [n for n in cycle.in_order(board.on(int(row))) if _leaves(cycle, args, n)]
        numbers = sorted(leaving, key=lambda number: -int(board.requests[number].max()))
        node = board.snapshot.name_of(int(row))
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
    everywhere = np.arange(len(accept))
    return cycle.send(number, accept, why, -cycle.stage.fullness(everywhere))


def _leaves(cycle: Cycle, args: HighNodeUtilization, number: int) -> bool:
    each = cycle.stage.pods[number]
    if cycle.stage.scene.stays_behind[number] or each.name.namespace in args.exclude_namespaces:
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
    snapshot = cycle.stage.scene.board.snapshot
    rows: Rows = np.flatnonzero(cycle.seen & ~usage.known)
    cycle.stage.notes += [
        f"{cycle.strategy} skips {snapshot.name_of(int(row))}: it has no metrics" for row in rows
    ]


def _shown(usage: _Usage, row: int, resources: tuple[str, ...]) -> str:
    return ", ".join(
        f"{share:.0f} % of {name}" for name, share in zip(resources, usage.shares[row], strict=True)
    )
