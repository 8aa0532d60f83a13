"""LowNodeLoad within a plan: pods go where it wants them, and have room there by all of `fit`."""

from __future__ import annotations

import numpy as np

from reserver.cluster.columns import Bools
from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.inventory import ListedPod
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.sources import source_of
from reserver.rebalance.strategies.low_node_load import Surroundings, balance


def low_node_load(cycle: Cycle, args: LowNodeLoad) -> None:
    """Move pods from nodes whose real load is high to nodes where it is low."""
    stage, real, source = cycle.stage, cycle.real, source_of(args)
    if source is None or source not in real.loads:
        stage.notes.append(f"{args.NAME} is not judged: what is used is not known")
        return
    board = stage.scene.board
    asked: tuple[int, Bools] = (-1, np.zeros(0, dtype=np.bool_))

    def fits(pod: ListedPod, node: str) -> bool:
        nonlocal asked
        number, row = stage.number_of(pod), board.snapshot.row(node)
        assert number is not None  # noqa: S101 - it may leave
        if asked[0] != number:
            asked = number, board.targets(number) & cycle.offered
        return row is not None and bool(asked[1][row])

    def evict(pod: ListedPod, target: str | None, reason: str) -> bool:
        nonlocal asked
        accept = np.ones(len(cycle.offered), dtype=np.bool_)
        if target is not None:
            accept[:] = False
            accept[board.snapshot.row(target)] = True
        asked = (-1, asked[1])  # Where there is room may be different now.
        number = stage.number_of(pod)
        return number is not None and cycle.send(number, accept, cycle.why(reason))

    def may_leave(pod: ListedPod) -> bool:
        number = stage.number_of(pod)
        if number is None or stage.has_moved(number):
            return False
        return not cycle.protection(number)

    found, after = balance(
        args,
        Surroundings(
            nodes=[
                node
                for name, node in sorted(stage.view.inventory.nodes.items())
                if (row := board.snapshot.row(name)) is not None and cycle.seen[row]
            ],
            pods=stage.view.inventory.by_node,
            load=real.loads[source],
            now=real.now,
            may_leave=may_leave,
            fits=fits,
            evict=evict,
        ),
        real.rounds(cycle.profile),
    )
    real.after[cycle.profile] = after
    stage.notes += found.notes
    for pod, why in found.spared:
        stage.keep(pod, cycle.why("its node is overutilized"), why)
