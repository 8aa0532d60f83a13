"""The progress of groups of moves: no member evicts before all hold their seats.

A group belongs to a namespace: equal names in other namespaces are other groups. A PodMoveGroup
lists the members of a group that spans namespaces (docs/adr/0061). No message to a member names a
member of another namespace.

Seats are taken in the order of the plan, which is feasible one move after the other. Moves run
concurrently, so each waits for earlier moves only where its early seat would be in their way. It
waits for a later move of the plan only if that follows an earlier one: so there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.moves.model import ALONE, Declared, GroupMember, Move
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.windows import ALWAYS, WindowState


@dataclass(slots=True)
class SeatOrder:
    """The members of a group, and the order of their seats on the nodes that they name.

    Attributes:
        members: the written members.
        unplaced: the members that follow another member and have no seat yet.
        next_on: of the others, by node, the first member without a seat there that is not paused.
    """

    members: dict[PodName, Move] = field(default_factory=dict)
    unplaced: list[Move] = field(default_factory=list)
    next_on: dict[str, Move] = field(default_factory=dict)

    def add(self, move: Move) -> None:
        """Add a member."""
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
        """Return a member whose seat has to come before that of a move; None without one.

        On each node seats are taken in the order of the plan: free room goes to the first member,
        and a later one gets room once the earlier ones have moved. A member that follows another
        holds no room until its pod has come. Until then later members take no seat on its target,
        or on the node where its pod stays for a while.
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
        """Return a member that has to hold the room that a move leaves, before the move; or None.

        It follows a member that comes before the move, and waits for no other.
        """
        for each, first in self._following():
            if first.order < move.order and each.spec.node == move.status.source:
                return each
        return None

    def _following(self) -> Iterator[tuple[Move, Move]]:
        """Yield each member without a seat that follows another, with the other."""
        for each in self.unplaced:
            first = self.members.get(PodName(each.name.namespace, each.spec.after))
            if first is not None:
                yield each, first


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A move in the arbitration: an open move, or an ended member of an open group.

    Attributes:
        move: the move.
        pod: the pod to move; None if gone.
        controller: the controller that replaces the pod.
        replicas: the number of the controller's pods; 0 if unknown.
        window: the state of the pod's move windows.
    """

    move: Move
    pod: Pod | None = None
    controller: Controller = NO_CONTROLLER
    replicas: int = 0
    window: WindowState = ALWAYS


@dataclass(slots=True)
class _Group:
    """The progress of a group's members.

    Attributes:
        waiting: the members without a seat.
        rooms: the number of members whose pod had no node: the others make room for them.
        unheld: the number of these members without held room.
        over: the number of these members that have ended.
        failed: the member whose failure fails the others; None without one.
        window: the window that opens last, among members that have not begun.
        seating: the members, and the order of their seats.
    """

    waiting: list[Move] = field(default_factory=list)
    rooms: int = 0
    unheld: int = 0
    over: int = 0
    failed: Move | None = None
    window: WindowState = ALWAYS
    seating: SeatOrder = field(default_factory=SeatOrder)

    def add(self, each: Contender) -> None:
        """Count a member."""
        move = each.move
        self.seating.add(move)
        if move.status.phase is MovePhase.PENDING:
            self.window = max(self.window, each.window, key=lambda window: window.opens_at)
        if _is_room(each):
            self.rooms += 1
            self.over += move.is_over
            self.unheld += not (move.is_over or move.status.target)
        if not (move.spec.after or _is_seated(move)):
            self.waiting.append(move)
        has_failed = move.status.phase is MovePhase.FAILED
        has_failed |= move.status.reason is MoveReason.NOTHING_TO_FOLLOW
        if has_failed:
            self.failed = min(self.failed or move, move, key=_failure)


Key = tuple[str, str]
"""The namespace of a group, empty for one that spans namespaces, and its name."""


def key_of(move: Move, declared: Declared) -> Key | None:
    """Return the group of which a move is a member; None if none, even if its spec names one."""
    group, namespace = move.spec.group, move.name.namespace
    if group == ALONE:
        return None
    if not group.across:
        return namespace, group.name
    uid = "" if move.spec.after else move.spec.uid
    is_listed = GroupMember(move.name, uid) in declared.get(group.name, ())
    return ("", group.name) if is_listed and (uid or move.spec.after) else None


class Groups:
    """The progress of each group's members."""

    def __init__(self, declared: Declared) -> None:
        """Begin without members; `declared` are the groups that span namespaces."""
        self._declared = declared
        self._groups: dict[Key, _Group] = {}

    def add(self, each: Contender) -> None:
        """Count a move in its group; open moves are added in the order of their turns."""
        if key := key_of(each.move, self._declared):
            self._groups.setdefault(key, _Group()).add(each)

    def incomplete(self, move: Move) -> str:
        """Return what a group lacks before a member may begin; empty if nothing."""
        if lacks := self._unwritten(move):
            return lacks
        first = self._of(move).seating.before(move)
        return f"{_named(first, move)} of its group must get its seat first" if first else ""

    def window(self, each: Contender) -> WindowState:
        """Return the state of a move's windows; of a pending move, of its whole group."""
        own, group = each.window, self._of(each.move).window
        if each.move.status.phase is not MovePhase.PENDING or own.opens_at >= group.opens_at:
            return own
        closes_at = min(own.closes_at, group.closes_at)
        return WindowState(group.opens_at, closes_at, f"a move of its group waits: {group.why}")

    def unseated(self, move: Move) -> str:
        """Return what a move waits for before it evicts; empty if nothing.

        It waits for the seats of all members. Members that make room may need each other's room, so
        they do not wait for each other's seats. Only moves whose room a following member takes wait
        for that member's seat.
        """
        if lacks := self._unwritten(move):
            return lacks
        group, size = self._of(move), move.spec.group.size
        if heir := group.seating.heir(move):
            said = "has no seat yet in the room that this one leaves"
            return f"{_named(heir, move)} of its group {said}"
        if group.rooms:
            return f"room is not held yet for {group.unheld} pods" if group.unheld else ""
        missing = size - (len(group.seating.members) - len(group.waiting))
        if missing <= 0:
            return ""
        here = (each for each in group.waiting if each.name.namespace == move.name.namespace)
        first = next((f", {each.name} among them" for each in here), "")
        return f"{missing} of the {size} moves of its group have no seat yet{first}"

    def failed(self, move: Move) -> str:
        """Return the name of the member whose failure fails the others; empty without one."""
        failed = self._of(move).failed
        return _named(failed, move) if failed else ""

    def is_needless(self, move: Move) -> bool:
        """Return whether all members for which a move's group makes room have ended."""
        group = self._of(move)
        return 0 < group.rooms == group.over

    def _unwritten(self, move: Move) -> str:
        """Return that members are not written yet, or that the move is not a member; else empty."""
        group = move.spec.group
        if group.across and key_of(move, self._declared) is None:
            return f"no PodMoveGroup {group.name} lists this PodMove and its pod"
        lacks = group.size - len(self._of(move).seating.members)
        if lacks <= 0:
            return ""
        said = f"{lacks} of the {group.size} moves of its group are not written yet"
        if group.across:
            return said
        return f"{said} in {move.name.namespace}; those of other namespaces take a PodMoveGroup"

    def _of(self, move: Move) -> _Group:
        key = key_of(move, self._declared)
        return self._groups.get(key, _NO_GROUP) if key else _NO_GROUP


_NO_GROUP = _Group()


def _is_room(each: Contender) -> bool:
    """Return whether a move holds room for a pod without a node, rather than making room."""
    is_to_enter = each.pod is not None and not each.pod.node
    return each.move.is_entering or (each.move.status.phase is MovePhase.PENDING and is_to_enter)


def _is_seated(move: Move) -> bool:
    """Return whether a move has its seat, or has ended without failing."""
    return move.status.phase not in {MovePhase.PENDING, MovePhase.RESERVING, MovePhase.FAILED}


def _failure(move: Move) -> tuple[bool, tuple[float, str, str]]:
    """Return the sort key of failed members: one that failed with another comes last."""
    return move.status.reason is MoveReason.GROUP_FAILED, move.order


def _named(member: Move, to: Move) -> str:
    """Return a member's name in a message to a move; never a name of another namespace."""
    is_here = member.name.namespace == to.name.namespace
    return str(member.name) if is_here else "a move of another namespace"
