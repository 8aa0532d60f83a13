"""Nodes that are held whole: all that their pods leave of them is held, whatever its size is.

What else a node offers, or its pods request, changes what is held of it. So that is counted here,
with each change, and not by the reservation.
"""

from __future__ import annotations

from collections.abc import Mapping

from reserver.cluster.capacity_matrix import ALLOCATABLE, HELD, REQUESTED, CapacityMatrix, Totals
from reserver.cluster.node import NODES


class WholeNodes(CapacityMatrix):
    """Capacity of which some is held by the node.

    Attributes:
        whole_nodes: what is held on these nodes as the ledger has it, by name.
        spoken_for: nodes that something is tried on (`Snapshot.take`).
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        super().__init__()
        self.whole_nodes: dict[str, Totals] = {}
        self.spoken_for: set[str] = set()

    def leaves(self, node: str, asked: Totals, taken: Totals) -> bool:
        """Return whether the pods of a node leave so much, whatever is held there.

        Args:
            asked: millicores of cpu, base units of all else.
            taken: what others are about to take beside the pods.
        """
        amounts = ((self.amounts(node, name), name) for name in asked)
        return all(
            each.allocatable - each.requested - taken.get(name, 0) >= asked[name]
            for each, name in amounts
        )

    def _mark_whole(self, node: str, row: int, held: Totals) -> None:
        """Note whether what is held on a node is the whole of it."""
        self.whole[row] = NODES in held
        if NODES in held:
            self.whole_nodes[node] = held
        else:
            self.whole_nodes.pop(node, None)

    def _with_rest(self, node: str, held: Totals) -> Totals:
        """Return what is held on a whole node, with all that its pods leave."""
        rest = self.left_on(node)
        return {n: rest.get(n, 0) + held.get(n, 0) for n in rest.keys() | held.keys()}

    def _recount_whole(self, node: str) -> None:
        """Count anew what is held of a whole node: its pods are others, or what it offers."""
        self._set(HELD, node, self._with_rest(node, self.whole_nodes[node]))

    def left_on(self, node: str) -> Mapping[str, int]:
        """Return what the pods of a node leave of it, holds aside."""
        requested = self._totals[REQUESTED].get(node, {})
        offered = self._totals[ALLOCATABLE].get(node, {})
        return {name: max(0, amount - requested.get(name, 0)) for name, amount in offered.items()}

    def _free_on(self, node: str) -> Mapping[str, int]:
        """Return what neither pods nor holds of a node have."""
        held = self._totals[HELD].get(node, {})
        return {name: max(0, n - held.get(name, 0)) for name, n in self.left_on(node).items()}

    def _part(self) -> None:
        """Share amounts with no other snapshot any more."""
        super()._part()
        self.whole_nodes, self.spoken_for = dict(self.whole_nodes), set(self.spoken_for)
