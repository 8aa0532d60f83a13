"""The order in which the moves of a group take their seats: that of their plan.

A plan can be carried out one move after the other. Moves go on at the same time, so each waits for
those before it only where a seat that is taken early would be in their way. It waits for no move
that comes after it in the plan but one that follows an earlier one: so none wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reserver.cluster.pod import PodName
from reserver.moves.model import Move
from reserver.moves.phases import MovePhase


@dataclass(slots=True)
class SeatOrder:
    """The members of a group that have a seat on the node that they name.

    Attributes:
        members: those that are written.
        unplaced: those that follow another one and have no seat yet.
        next_on: of the others, by node, the first that has no seat there yet; who is paused does
            not count.
    """

    members: dict[PodName, Move] = field(default_factory=dict)
    unplaced: list[Move] = field(default_factory=list)
    next_on: dict[str, Move] = field(default_factory=dict)

    def add(self, move: Move) -> None:
        """Take one more member."""
        self.members[move.name] = move
        node = move.spec.node
        if move.is_over or move.status.target or not node:
            return
        if move.spec.after:
            self.unplaced.append(move)
        elif move.status.phase in {MovePhase.PENDING, MovePhase.RESERVING} and not move.spec.paused:
            self.next_on[node] = min(
                self.next_on.get(node, move), move, key=lambda each: each.order
            )

    def before(self, move: Move) -> Move | None:
        """Return a member that is to have its seat before a move takes one; None for none.

        On each node seats are taken in the order of the plan: what is left goes to who was first,
        and the room that a later one waits for is left once the earlier ones have gone on. A member
        that follows another one can hold no room until its pod has come. Meanwhile who comes after
        it takes no seat where it goes to, or where its pod is for a while.
        """
        node = move.spec.node
        if not node or move.spec.after:
            return None
        for each, first in self._following():
            if each.order < move.order and node in {each.spec.node, first.spec.node}:
                return each
        earlier = self.next_on.get(node, move)
        return earlier if earlier.order < move.order else None

    def heir(self, move: Move) -> Move | None:
        """Return a member that is to hold the room that a move leaves before it does; or none.

        It follows one that comes before the move, and waits for nobody else.
        """
        for each, first in self._following():
            if first.order < move.order and each.spec.node == move.status.source:
                return each
        return None

    def _following(self) -> Iterator[tuple[Move, Move]]:
        """Yield the members that follow another one and have no seat yet, each with that one."""
        for each in self.unplaced:
            first = self.members.get(PodName(each.name.namespace, each.spec.after))
            if first is not None:
                yield each, first
