"""Moves of a plan that need each other's room take their seats on a node in the plan's order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from tests.unit.moves.world import World

GROUP = {"name": "chain", "size": 1}
PLAN = (("b", "worker-1"), ("web", "worker-2"), ("c", "worker-1"))
"""Node worker-1 has room for one pod next to web; worker-2 is full of b and d. So b goes first."""


class Chain(World):
    """Nodes with room for two pods each."""

    def __init__(self) -> None:
        super().__init__(nodes=3)
        self.others = ("b", "c", "d")
        for name, node in (("b", "worker-2"), ("d", "worker-2"), ("c", "worker-3")):
            self.make_pod(node, of=name)

    def write(self, order: Sequence[int]) -> None:
        """Write the moves of the plan within a second."""
        for number in order:
            workload, node = PLAN[number]
            metadata = self.pods(workload)[0]["metadata"]
            pod = {"name": metadata["name"], "uid": metadata["uid"]}
            self.move(pod, f"chain-{number}", to={"node": node}, group=GROUP)


@pytest.mark.parametrize("order", tuple(permutations(range(3))))
async def test_whichever_is_seen_first_none_takes_the_room_that_another_one_needs_before(
    order: Sequence[int],
) -> None:
    world = Chain()
    await world.start()
    world.write(order)
    await world.settle(rounds=60)
    ends = {name: world.nodes_of(name) for name, _ in PLAN}
    assert ends == {name: [node] for name, node in PLAN}
    assert {world.status_of(f"chain-{n}")["reason"] for n in range(3)} == {"Landed"}
