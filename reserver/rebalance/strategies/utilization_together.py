"""LowNodeUtilization and HighNodeUtilization: pods leave nodes because of the nodes' usage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.rebalance.arguments.base import Thresholds
from reserver.rebalance.arguments.utilization import (
    METRIC,
    HighNodeUtilization,
    LowNodeUtilization,
)
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.plan import Why
from reserver.rebalance.plan_builder import NO_ROOM, Floats
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.planning_snapshot import PlanningSnapshot
from reserver.rebalance.pod_index import Alike, Indexes
from reserver.rebalance.usage import offered

_PERCENT = 100.0


class _Usage:
    """The usage of nodes by resource with a threshold, in percent.

    Attributes:
        shares: float array, rows × resources; changes as pods are moved.
        known: bool array, rows: the node's usage is known.
        tells_pods: the usage of single pods is known; Prometheus reports nodes only.
    """

    def __init__(
        self, state: PlanState, resources: tuple[str, ...], load: SmoothedLoad | None = None
    ) -> None:
        """Start with the measured usage, or with requests if there is no `load`."""
        cluster, planned = state.index.cluster, state.planned
        snapshot = planned.snapshot
        self._state, self._resources, self._load = state, resources, load
        self.tells_pods = METRIC not in resources
        self._offered: Floats = np.zeros((len(planned.closed), len(resources)))
        used = np.zeros_like(self._offered)
        self.known: Bools = state.looked_at.copy()
        for name, node in cluster.nodes.items():
            row = snapshot.row(name)
            if row is None:
                continue
            amounts: Mapping[str, float] = _requested(planned, name, resources)
            if load is not None:
                self.known[row] &= name in load.nodes
                measured = load.nodes[name].usage if name in load.nodes else {}
                amounts = {"pods": amounts.get("pods", 0), **measured}
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
        """Return a pod's usage of each resource: measured, or its requests."""
        return self._amounts[int(self.asked[number])]

    @property
    def asked(self) -> Indexes:
        """Array by pod: the same number for pods that use the same amounts."""
        return self._asked.ids

    @cached_property
    def _amounts(self) -> list[tuple[float, ...]]:
        return list(map(self._of_resources, self._asked.values))

    @cached_property
    def _asked(self) -> Alike[Mapping[str, float]]:
        used: list[Mapping[str, float]] = [each.pod.requests for each in self._state.index.pods]
        if self._load is not None:
            measured = [self._load.pods.get(each.name) for each in self._state.index.pods]
            used = [
                {**own, **more} if more else own for own, more in zip(used, measured, strict=True)
            ]
        return Alike(used, self._of_resources)

    def _of_resources(self, amounts: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(amounts.get(name, 0) for name in self._resources)

    def move(self, number: int, source: int, target: int) -> None:
        """Move the usage of a pod to another node."""
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
    """Return the requests of a node's pods."""
    amounts = planned.snapshot.amounts
    return {resource: amounts(node, resource).requested for resource in resources}


def level(args: LowNodeUtilization, state: PlanState) -> Batches:
    """Yield pods that go from nodes above the target thresholds to nodes below the thresholds.

    A node takes pods only as long as it stays below the target thresholds itself: what would make
    it one that pods leave does not go there.
    """
    resources = tuple(args.thresholds)
    source = source_of(args)
    if source is not None and source not in state.given.loads:
        state.builder.notes.append(f"{args.NAME} does nothing: usage is unknown")
        return
    usage = _Usage(state, resources, state.given.loads[source] if source else None)
    _name_unknown(state, usage)
    low, high = _bounds(usage, args)
    under = usage.known & np.all(usage.shares <= low, axis=1)
    over = usage.known & ~under & np.any(usage.shares > high, axis=1)
    count = np.count_nonzero(under)
    if not count or count <= args.number_of_nodes or count == usage.known.sum():
        return
    balance = _Balance(state, args, usage, under, high)
    rows = np.flatnonzero(over)
    for row in rows[np.lexsort((rows, -usage.shares[rows].max(axis=1, initial=0.0)))]:
        yield from balance.relieve(int(row))


class _Balance:
    """LowNodeUtilization's nodes, and pods on their way from one to another."""

    def __init__(
        self, state: PlanState, args: LowNodeUtilization, usage: _Usage, under: Bools, high: Floats
    ) -> None:
        self._state, self._args, self._usage = state, args, usage
        self._takers, self._high = np.flatnonzero(under), high
        self._on = state.planned.by_row()
        self._looked_at = state.chosen(args.evictable_namespaces)
        # The room of nodes that take pods only shrinks: what finds none will find none later.
        asked, kinds = usage.asked, state.planned.kinds
        _, self._kinds = np.unique(kinds * len(asked) + asked, return_inverse=True)
        self._hopeless_kinds = np.zeros(len(asked), dtype=np.bool_)
        self._hopeless_amounts = np.zeros(len(asked), dtype=np.bool_)

    def relieve(self, row: int) -> Batches:
        """Yield the pods of a node until it is no longer above the target thresholds."""
        usage, state, args = self._usage, self._state, self._args
        left = args.eviction_limits.node
        if left is None and not usage.tells_pods:
            left = 1
        if left == 0:
            return
        why = self._why(row)
        on = self._on[row]
        leaving = np.array(state.index.least_first(on[self._looked_at[on]]), dtype=np.intp)
        hopeless = self._is_hopeless(leaving).tolist()
        for number, is_hopeless in zip(leaving.tolist(), hopeless, strict=True):
            if is_hopeless or self._is_hopeless(number):
                state.builder.keep(number, why, partial(self._why_kept, number))
                continue
            was_here = not state.has_left(number)
            yield from self._candidate(number, why)
            if not was_here or not state.has_left(number):
                continue
            usage.move(number, row, int(state.rows[number]))
            left = None if left is None else left - 1
            if left == 0 or not np.any(usage.shares[row] > self._high[row]):
                return

    def _why(self, row: int) -> Why:
        node = self._state.planned.snapshot.name_of(row)
        shown = _shown(self._usage, row, tuple(self._args.thresholds))
        reason = f"{node} uses {shown}, above the thresholds"
        return self._state.why(reason, f"{node} comes closer to the target thresholds")

    def _is_hopeless(self, pods: Indexes | int) -> Bools:
        kinds, asked = self._kinds[pods], self._usage.asked[pods]
        hopeless: Bools = self._hopeless_kinds[kinds] | self._hopeless_amounts[asked]
        return hopeless

    def _why_kept(self, number: int) -> str:
        return self._state.protection(number) or NO_ROOM

    def _candidate(self, number: int, why: Why) -> Batches:
        state, usage = self._state, self._usage
        amounts = usage.amounts(number)
        rows = self._takers
        after = usage.shares[rows] + usage.of(amounts, rows)
        fine = np.all(after <= self._high[rows], axis=1)
        gain: Floats | None = None
        if usage.tells_pods:
            gain = np.zeros(len(self._high))
            gain[rows] = self._gain(number, amounts, after)
            least = state.given.least_gain
            fine &= (gain[rows] >= least) | (not least)
        accept, score = np.zeros(len(self._high), dtype=np.bool_), np.zeros(len(self._high))
        accept[rows[fine]] = True
        score[rows] = after.max(axis=1)
        yield [Candidate(number, why.reason, why.improves, accept, score, gain=gain)]
        if state.has_left(number) or state.protection(number) or state.builder.refusal(number):
            return
        if fine.any():
            self._hopeless_kinds[self._kinds[number]] = True
        else:
            self._hopeless_amounts[usage.asked[number]] = True

    def _gain(self, number: int, amounts: tuple[float, ...], after: Floats) -> Floats:
        """Return by how much the fuller one of two nodes is used less once a pod has moved."""
        row = np.array([self._state.rows[number]])
        before = self._usage.shares[row]
        left = (before - self._usage.of(amounts, row)).max()
        gain: Floats = before.max() - np.maximum(after.max(axis=1), left)
        return gain


def empty(args: HighNodeUtilization, state: PlanState) -> Batches:
    """Yield all pods of a node below the thresholds, if all find room on nodes above.

    To move only some of them would cost moves, and spare no node.
    """
    resources = tuple(args.thresholds)
    usage = _Usage(state, resources)
    limits = np.array([args.thresholds[name] for name in resources])
    under = usage.known & np.all(usage.shares <= limits, axis=1)
    count = np.count_nonzero(under)
    if not count or count <= args.number_of_nodes or count == usage.known.sum():
        return
    builder, planned = state.builder, state.planned
    rows = np.flatnonzero(under)
    for row in rows[np.lexsort((rows, usage.shares[rows].max(axis=1, initial=0.0)))]:
        leaving = [
            n for n in state.index.least_first(planned.on(int(row))) if _leaves(state, args, n)
        ]
        numbers = sorted(leaving, key=lambda number: -int(planned.requests[number].max()))
        node = planned.snapshot.name_of(int(row))
        reason = f"{node} uses {_shown(usage, int(row), resources)}, below the thresholds"
        why = state.why(reason, f"{node} is emptied")
        mark = builder.mark()
        if not any(state.has_left(n) or state.protection(n) for n in numbers):
            for number in numbers:
                # The fullest node that has room takes it.
                score = -builder.fullness
                yield [Candidate(number, why.reason, why.improves, ~under, score)]
                if not state.has_left(number):
                    break
        if not all(map(state.has_left, numbers)):
            builder.back(mark)
        for number in numbers:
            reason = f"not all pods of {node} find room on nodes that are in use"
            builder.keep(number, why, state.protection(number) or reason)


def _leaves(state: PlanState, args: HighNodeUtilization, number: int) -> bool:
    each = state.index.pods[number]
    is_open = args.evictable_namespaces.has(each.name.namespace)
    if state.planned.stays_behind[number] or not is_open:
        return False
    return not args.eviction_modes or bool(each.named & args.thresholds.keys())


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


def _name_unknown(state: PlanState, usage: _Usage) -> None:
    snapshot = state.planned.snapshot
    rows: Rows = np.flatnonzero(state.looked_at & ~usage.known)
    state.builder.notes += [
        f"{state.strategy} skips {snapshot.name_of(int(row))}: it has no metrics" for row in rows
    ]


def _shown(usage: _Usage, row: int, resources: tuple[str, ...]) -> str:
    return ", ".join(
        f"{share:.0f} % of {name}" for name, share in zip(resources, usage.shares[row], strict=True)
    )
