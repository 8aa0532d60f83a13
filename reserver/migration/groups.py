"""How far the moves of a group are: none evicts before all have their seats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod
from reserver.migration.move import ALONE, Move, Phase, Reason
from reserver.migration.seating import Seating


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A move that asks for its turn, or that others of its group ask about.

    Attributes:
        move: the move; one that has ended counts in its group.
        pod: the pod that is to leave; None if it is gone.
        controller: what will replace it.
        replicas: how many pods that has; 0 if unknown.
    """

    move: Move
    pod: Pod | None = None
    controller: Controller = NO_CONTROLLER
    replicas: int = 0


@dataclass(slots=True)
class _Group:
    """How far the members of a group are.

    Attributes:
        waiting: how many of them have no seat yet.
        first: one of the latter; empty for none.
        rooms: how many have a pod that had no node: the others make room for them.
        unheld: how many of these hold none yet.
        over: how many of these have ended.
        failed: the member with which the others fail; empty for none.
        is_first_cause: that one did not fail because another did.
        seating: its members, and whose seat comes first.
    """

    waiting: int = 0
    first: str = ""
    rooms: int = 0
    unheld: int = 0
    over: int = 0
    failed: str = ""
    is_first_cause: bool = False
    seating: Seating = field(default_factory=Seating)

    def add(self, each: Contender) -> None:
        """Count one more member."""
        move = each.move
        self.seating.add(move)
        if _is_room(each):
            self.rooms += 1
            self.over += move.is_over
            self.unheld += not (move.is_over or move.status.target)
        if not (move.spec.after or _is_seated(move)):
            self.waiting += 1
            self.first = self.first or str(move.name)
        has_failed = move.status.phase is Phase.FAILED
        has_failed |= move.status.reason is Reason.NOTHING_TO_FOLLOW
        if has_failed and not self.is_first_cause:
            self.is_first_cause = move.status.reason is not Reason.GROUP_FAILED
            self.failed = str(move.name) if self.is_first_cause or not self.failed else self.failed


class Groups:
    """How far the members of each group are, in whichever namespaces they are."""

    def __init__(self, moves: Iterable[Contender]) -> None:
        """Look at moves, in the order in which they are named."""
        self._groups: dict[str, _Group] = {}
        for each in moves:
            if each.move.spec.group != ALONE:
                self._groups.setdefault(each.move.spec.group.name, _Group()).add(each)

    def incomplete(self, move: Move) -> str:
        """Return what a group still lacks before its members begin; empty if nothing."""
        size = move.spec.group.size
        group = self._of(move)
        lacks = size - len(group.seating.members)
        if lacks > 0:
            return f"{lacks} of the {size} moves of its group are not written yet"
        first = group.seating.before(move)
        return f"{first} of its group is to have its seat before" if first else ""

    def unseated(self, move: Move) -> str:
        """Return what a move waits for before it evicts; empty if for nothing.

        That is the seats of all members. Of those that make room, which may need each other's, none
        waits for another one's seat. Nor does anybody wait for that of one that follows another,
        but those whose room it is to have.
        """
        group, size = self._of(move), move.spec.group.size
        if heir := group.seating.heir(move):
            return f"{heir} of its group has no seat yet in the room that this one leaves"
        if group.rooms:
            return f"room is not held yet for {group.unheld} pods" if group.unheld else ""
        lacks = size - (len(group.seating.members) - group.waiting)
        if lacks <= 0:
            return ""
        first = f", {group.first} among them" if group.first else ""
        return f"{lacks} of the {size} moves of its group have no seat yet{first}"

    def failed(self, move: Move) -> str:
        """Return the member with which the others fail; empty if there is none."""
        return self._of(move).failed

    def is_needless(self, move: Move) -> bool:
        """Return whether a move made room, and all those that it was for have ended."""
        group = self._of(move)
        return 0 < group.rooms == group.over

    def _of(self, move: Move) -> _Group:
        return self._groups.get(move.spec.group.name, _NO_GROUP)


_NO_GROUP = _Group()


def _is_room(each: Contender) -> bool:
    """Return whether a move holds room for a pod that has no node, rather than making some."""
    is_to_enter = each.pod is not None and not each.pod.node
    return each.move.is_entering or (each.move.status.phase is Phase.PENDING and is_to_enter)


def _is_seated(move: Move) -> bool:
    """Return whether a move has its seat, or ended because there was nothing to move any more."""
    return move.status.phase not in {Phase.PENDING, Phase.RESERVING, Phase.FAILED}
