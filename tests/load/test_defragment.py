"""Emptied nodes compared with HiGHS, on clusters that HiGHS can solve exactly.

It takes HiGHS minutes, so this is a step of `make release-check`, not of CI.
"""

from __future__ import annotations

import random
import time

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.defragment import defragment
from reserver.rebalance.time_limit import TimeLimit
from tests.builders import node, pod
from tests.unit.rebalance.scenes import assert_feasible, scene

SOLVER_S = 30.0
SIZES = ((4_000, 16), (8_000, 32), (16_000, 64))
"""Nodes: millicores and GiB."""

SHARES = (0.05, 0.1, 0.15, 0.25)
"""Requests of pods as shares of the smallest node's cores."""


def cluster(nodes: int, full: float, seed: int) -> list[Node | Pod]:
    """Return nodes of three sizes whose cores are requested to about such a share, all together."""
    drawn = random.Random(seed)
    sizes = [drawn.choice(SIZES) for _ in range(nodes)]
    things: list[Node | Pod] = [
        node(f"n{at:02}", cpu=f"{cpu}m", memory=f"{memory}Gi")
        for at, (cpu, memory) in enumerate(sizes)
    ]
    left = [list[float](size) for size in sizes]
    budget = full * sum(cpu for cpu, _ in sizes)
    for number in range(10_000):
        cpu = int(4_000 * drawn.choice(SHARES))
        memory = cpu * 4 * drawn.uniform(0.5, 1.2) / 1_000
        places = [at for at in range(nodes) if left[at][0] >= cpu and left[at][1] >= memory]
        if budget < cpu or not places:
            break
        at = drawn.choice(places)
        budget, left[at] = budget - cpu, [left[at][0] - cpu, left[at][1] - memory]
        name = f"p{number:03}"
        things.append(pod(name, node=f"n{at:02}", cpu=f"{cpu}m", memory=f"{int(memory * 1024)}Mi"))
    return things


@pytest.mark.parametrize("nodes", [10, 20, 30])
def test_nearly_as_many_nodes_as_the_optimum_with_at_most_a_fifth_more_moves(nodes: int) -> None:
    emptied = optimum = moved = fewest = proved = 0
    for at, full in enumerate((0.85, 0.87, 0.9, 0.92, 0.95)):
        things = cluster(nodes, full, seed=100 * nodes + at)
        plan = defragment(scene(*things))
        assert_feasible(plan, *things)
        best = defragment(scene(*things), limit=TimeLimit.after(SOLVER_S, time.monotonic))
        if best.bound[:2] != (len(best.moves), len(best.emptied)):
            continue
        proved += 1
        emptied, optimum = emptied + len(plan.emptied), optimum + len(best.emptied)
        if len(plan.emptied) == len(best.emptied):
            moved, fewest = moved + len(plan.moves), fewest + len(best.moves)
    assert proved
    assert emptied >= 0.95 * optimum
    assert moved <= 1.2 * fewest
