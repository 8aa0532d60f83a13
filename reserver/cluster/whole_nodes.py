"""Nodes that are held whole: all room that their pods leave is held, whatever its size.

A change of the node's allocatable resources or of its pods changes the held amounts. So they are
recounted here with each change, and not by the reservation.
"""

from __future__ import annotations

from collections.abc import Mapping

from reserver.cluster.capacity_matrix import ALLOCATABLE, HELD, REQUESTED, CapacityMatrix, Totals
from reserver.cluster.node import NODES


class WholeNodes(CapacityMatrix):
    """Capacity of nodes, some of which are held whole.

    Attributes:
        whole_nodes: held amounts of these nodes in the ledger, by name of the node.
        spoken_for: nodes on which `Snapshot.take` has counted amounts.
    """

    def __init__(self) -> None:
        """Begin without nodes."""
        super().__init__()
        self.whole_nodes: dict[str, Totals] = {}
        self.spoken_for: set[str] = set()

    def leaves(self, node: str, asked: Totals, taken: Totals) -> bool:
        """Return whether the pods of a node leave these amounts, whatever is held there.

        Args:
            node: name of the node.
            asked: millicores of cpu, base units of other resources.
            taken: amounts that other pods are about to take.
        """
        amounts = ((self.amounts(node, name), name) for name in asked)
        return all(
            each.allocatable - each.requested - taken.get(name, 0) >= asked[name]
            for each, name in amounts
        )

    def _mark_whole(self, node: str, row: int, held: Totals) -> None:
        """Record whether a hold covers the whole node."""
        self.whole[row] = NODES in held
        if NODES in held:
            self.whole_nodes[node] = held
        else:
            self.whole_nodes.pop(node, None)

    def _with_rest(self, node: str, held: Totals) -> Totals:
        """Return the held amounts of a whole node, plus all room that its pods leave."""
        rest = self.left_on(node)
        return {n: rest.get(n, 0) + held.get(n, 0) for n in rest.keys() | held.keys()}

    def _recount_whole(self, node: str) -> None:
        """Recount the held amounts of a whole node: its pods or its allocatable have changed."""
        self._set(HELD, node, self._with_rest(node, self.whole_nodes[node]))

    def left_on(self, node: str) -> Mapping[str, int]:
        """Return the allocatable amounts of a node minus its pods' requests, ignoring holds."""
        requested = self._totals[REQUESTED].get(node, {})
        offered = self._totals[ALLOCATABLE].get(node, {})
        return {name: max(0, amount - requested.get(name, 0)) for name, amount in offered.items()}

    def _free_on(self, node: str) -> Mapping[str, int]:
        """Return the amounts of a node that are neither requested nor held."""
        held = self._totals[HELD].get(node, {})
        return {name: max(0, n - held.get(name, 0)) for name, n in self.left_on(node).items()}

    def _detach(self) -> None:
        """Copy all amounts that are shared with another snapshot."""
        super()._detach()
        self.whole_nodes, self.spoken_for = dict(self.whole_nodes), set(self.spoken_for)
