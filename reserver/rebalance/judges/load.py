"""LowNodeLoad within a plan: pods go where it wants them, and have room there by all of `fit`."""

from __future__ import annotations

import numpy as np

from reserver.cluster.columns import Bools
from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.measured_load import source_of
from reserver.rebalance.strategies.low_node_load import Surroundings, balance


def low_node_load(cycle: Cycle, args: LowNodeLoad) -> None:
    """Move pods from nodes whose real load is high to nodes where it is low."""
    stage, real, source = cycle.stage, cycle.real, source_of(args)
    if source is None or source not in real.loads:
        stage.notes.append(f"{args.NAME} is not judged: what is used is not known")
        return
    planned, leaving = stage.planned, _Leaving(cycle)
    nodes = [
        node
        for name, node in sorted(stage.view.cluster.nodes.items())
        if (row := planned.snapshot.row(name)) is not None and cycle.seen[row]
    ]
    found, after = balance(
        args,
        Surroundings(
            nodes=nodes,
            pods=stage.view.cluster.by_node,
            load=real.loads[source],
            now=real.now,
            may_leave=leaving.may_leave,
            fits=leaving.fits,
            evict=leaving.evict,
        ),
        real.rounds(cycle.profile),
    )
    real.after[cycle.profile] = after
    stage.notes += found.notes
    for pod, why in found.spared:
        stage.keep(pod, cycle.why("its node is overutilized"), why)


class _Leaving:
    """Which pods may leave, and where they have room; asked for one pod after the other."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._number = -1
        self._targets: Bools = np.zeros(0, dtype=np.bool_)

    def may_leave(self, pod: ListedPod) -> bool:
        number = self._cycle.stage.number_of(pod)
        if number is None or self._cycle.stage.has_moved(number):
            return False
        return not self._cycle.protection(number)

    def fits(self, pod: ListedPod, node: str) -> bool:
        planned = self._cycle.stage.planned
        number, row = self._cycle.stage.number_of(pod), planned.snapshot.row(node)
        assert number is not None  # noqa: S101 - it may leave
        if self._number != number:
            self._number, self._targets = number, planned.targets(number) & self._cycle.offered
        return row is not None and bool(self._targets[row])

    def evict(self, pod: ListedPod, target: str | None, reason: str) -> bool:
        cycle = self._cycle
        accept = np.ones(len(cycle.offered), dtype=np.bool_)
        if target is not None:
            accept[:] = False
            accept[cycle.stage.planned.snapshot.row(target)] = True
        self._number = -1  # Where there is room may be different now.
        number = cycle.stage.number_of(pod)
        return number is not None and cycle.send(number, accept, cycle.why(reason))
