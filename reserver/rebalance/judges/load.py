"""LowNodeLoad within a plan: pods go where it wants them, and have room there by all of `fit`."""

from __future__ import annotations

import numpy as np

from reserver.cluster.columns import Bools
from reserver.rebalance.arguments import LowNodeLoad
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
    numbers = {each.pod.uid: number for number, each in enumerate(stage.pods)}
    asked: tuple[int, Bools] = (-1, np.zeros(0, dtype=np.bool_))

    def fits(pod: ListedPod, node: str) -> bool:
        nonlocal asked
        number, row = numbers[pod.pod.uid], board.snapshot.row(node)
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
        return cycle.send(numbers[pod.pod.uid], accept, cycle.why(reason))

    found, after = balance(
        args,
        Surroundings(
            nodes=[
                node
                for name, node in sorted(stage.inventory.nodes.items())
                if (row := board.snapshot.row(name)) is not None and cycle.seen[row]
            ],
            pods=stage.inventory.by_node,
            load=real.loads[source],
            now=real.now,
            may_leave=lambda pod: (
                pod.pod.uid in numbers
                and not stage.has_moved(numbers[pod.pod.uid])
                and not cycle.protection(numbers[pod.pod.uid])
            ),
            fits=fits,
            evict=evict,
        ),
        real.rounds(cycle.profile),
    )
    real.after[cycle.profile] = after
    stage.notes += found.notes
    for pod, why in found.spared:
        stage.keep(pod, cycle.why("its node is overutilized"), why)
