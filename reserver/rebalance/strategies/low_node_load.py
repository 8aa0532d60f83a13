"""LowNodeLoad: pods go where it wants them, and have room there by all of `fit`.

Upstream has no such strategy, so only plans have it. It moves its pods itself.
"""

from __future__ import annotations

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.load_balance import balance
from reserver.rebalance.load_comparison import BalanceInput
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.planning_snapshot import NOWHERE
from reserver.rebalance.strategies.candidate import Batches, Candidate


def find(args: LowNodeLoad, state: PlanState) -> Batches:
    """Move pods from nodes whose measured load is high to nodes where it is low; yield none."""
    builder, measured, source = state.builder, state.load, source_of(args)
    if source is None or source not in measured.loads:
        builder.notes.append(f"{args.NAME} is not judged: what is used is not known")
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
            load=measured.loads[source],
            now=measured.now,
            may_leave=leaving.may_leave,
            fits=leaving.fits,
            evict=leaving.evict,
            least_gain=state.least_gain,
        ),
        measured.rounds(state.profile),
    )
    measured.after[state.profile] = after
    builder.notes += found.notes
    for pod, why in found.spared:
        builder.keep(leaving.numbers[pod.pod.uid], state.why("its node is overutilized"), why)
    return iter(())


class _Leaving:
    """Which pods may leave, and where they have room; for one pod after the other.

    Attributes:
        numbers: of the pods, by UID.
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
