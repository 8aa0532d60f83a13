"""Caches the PodMoves, with indexes by pod, seat, workload, node and dependency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from reserver.base.fairness import FairCount, FairMemory
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import ResourceMetadata
from reserver.moves.model import ALONE, MOST_IN_A_ROW, Move, MoveStatus, Replacement
from reserver.moves.observation import ObservedMove
from reserver.moves.phases import MovePhase
from reserver.moves.podmove import MoveObject, read_object
from reserver.moves.podmove_status import StatusObject, has_begun, said
from reserver.moves.workloads import Workload

MOST_MOVES = 1_000
"""The most PodMoves under way in one namespace; others are refused."""

MOST_MOVES_IN_ALL = 10_000
"""The most PodMoves under way in all namespaces; none has more than is left to the others."""

MOST_ENDED = 5_000
"""The most ended PodMoves of a namespace that count in its groups: of more, the last ones, and
those of small groups first."""

_MOST_REPLACEMENTS = 16_384
"""Most replacements whose moves are remembered, those of deleted moves too: a pod replaces once.
A namespace that fills the memory forgets its own."""


@dataclass(slots=True)
class KnownMove:
    """A PodMove as it was last read.

    Attributes:
        metadata: the object's metadata; its resourceVersion is the precondition of a write.
        move: its spec and status; None if it cannot be carried out.
        problem: why it cannot be carried out; None if it can.
        said: the written status; None if empty, or if Reserver did not write it.
        writing: the status of a write in flight, as object and as value; None without one.
        has_begun: whether its status has to stay, although it cannot be carried out.
        told: the last problem that was reported; empty without one.
    """

    metadata: ResourceMetadata
    move: Move | None
    problem: InvalidInput | None
    said: StatusObject | None
    writing: tuple[StatusObject, MoveStatus] | None = None
    has_begun: bool = False
    told: str = ""

    @property
    def name(self) -> PodName:
        """Namespace and name."""
        return PodName(self.metadata.namespace, self.metadata.name)

    def known_status(self, said: StatusObject | None) -> MoveStatus | None:
        """Return the cached value of a written status; None if another client wrote it."""
        if self.writing is not None and said == self.writing[0]:
            return self.writing[1]
        return self.move.status if self.move is not None and said == self.said else None


class MoveIndex:
    """All PodMoves, by name, by pod and by seat."""

    def __init__(self, on_changed: Callable[[PodName], None]) -> None:
        """Begin without PodMoves; `on_changed` is called with each that is written or deleted."""
        self._on_changed = on_changed
        self._known: dict[PodName, KnownMove] = {}
        self._open: dict[PodName, Move] = {}
        self._ended_in: defaultdict[tuple[str, str], dict[PodName, None]] = defaultdict(dict)
        self._of_pod: defaultdict[PodName, set[PodName]] = defaultdict(set)
        self._of_workload: defaultdict[Workload, set[PodName]] = defaultdict(set)
        self._of_seat: dict[PodName, PodName] = {}
        self._followers: defaultdict[PodName, set[PodName]] = defaultdict(set)
        self._landing_on: defaultdict[str, set[PodName]] = defaultdict(set)
        self._replacements = FairMemory[str, PodName](_MOST_REPLACEMENTS)
        self._under_way = FairCount(MOST_MOVES_IN_ALL)

    def __iter__(self) -> Iterator[KnownMove]:
        """Yield each PodMove."""
        yield from self._known.values()

    def get(self, name: PodName) -> KnownMove | None:
        """Return a PodMove; None without one."""
        return self._known.get(name)

    def open(self) -> dict[PodName, Move]:
        """Return the PodMoves that have not ended, as they are now."""
        return dict(self._open)

    def ended_in(self, namespace: str, group: str) -> dict[PodName, None]:
        """Return the ended PodMoves of a group of a namespace, to be read, the last one last."""
        return self._ended_in.get((namespace, group), {})

    def names(self) -> tuple[PodName, ...]:
        """Return namespace and name of all PodMoves."""
        return tuple(self._known)

    def of_pod(self, pod: PodName) -> frozenset[PodName]:
        """Return the open PodMoves of a pod, by the pod's name."""
        return frozenset(self._of_pod.get(pod, ()))

    def of_workload(self, workload: Workload) -> frozenset[PodName]:
        """Return the open PodMoves of a controller's pods."""
        return frozenset(self._of_workload.get(workload, ()))

    def of_seat(self, seat: PodName) -> PodName | None:
        """Return the PodMove of a seat; None without one."""
        return self._of_seat.get(seat)

    def landing_on(self, node: str) -> frozenset[PodName]:
        """Return the PodMoves that wait for replacements on a node."""
        return frozenset(self._landing_on.get(node, ()))

    def followers(self, name: PodName) -> frozenset[PodName]:
        """Return the PodMoves that wait for the pod of a PodMove."""
        return frozenset(self._followers.get(name, ()))

    def has_room(self, namespace: str, extra: int = 0) -> bool:
        """Return whether a namespace may have a PodMove more, beside `extra` ones to come."""
        is_within = self._under_way.of(namespace) + extra < MOST_MOVES
        return is_within and self._under_way.has_room(namespace, extra)

    def put(self, item: MoveObject) -> None:
        """Store a new version of a PodMove; an older version is ignored."""
        before = self._known.get(item.name)
        if before is not None and before.metadata.uid != item.metadata.uid:
            self.drop(item.name)
            before = None
        if before is not None and item.metadata.revision < before.metadata.revision:
            return  # The response to Reserver's write came before this event.
        self._forget(before)
        self._known[item.name] = known = self._read(item, before)
        self._remember(known)
        self._on_changed(item.name)

    def drop(self, name: PodName) -> None:
        """Remove a deleted PodMove."""
        known = self._known.pop(name, None)
        if known is not None:
            self._forget(known)
            self._on_changed(name)

    def judged(self, known: KnownMove, status: MoveStatus) -> None:
        """Set the status of a PodMove."""
        if known.move is not None:
            self._forget(known)
            known.move = replace(known.move, status=status)
            self._remember(known)

    def may_take(self, uid: str, name: PodName) -> bool:
        """Return whether a pod is not the replacement of another move."""
        return self._replacements.get(uid, name) == name

    def take(self, uid: str, name: PodName) -> None:
        """Record the move of which a pod is the replacement."""
        first = self._replacements.get(uid, name)
        self._replacements.put(first.namespace, uid, first)

    def _read(self, item: MoveObject, before: KnownMove | None) -> KnownMove:
        known = KnownMove(item.metadata, None, None, said(item.status))
        try:
            known.move = read_object(item)
            self._check_number(known, before)
        except InvalidInput as exc:
            known.move, known.problem = None, exc.detached()
            known.has_begun = has_begun(item.status)
            known.told = before.told if before else ""
            return known
        status = before.known_status(known.said) if before else None
        if status is not None:  # With its unwritten fields.
            known.move = replace(known.move, status=status)
        return known

    def _check_number(self, known: KnownMove, before: KnownMove | None) -> None:
        """Refuse a PodMove beyond the limits, unless it has begun.

        Raises:
            InvalidInput: there are too many PodMoves.
        """
        namespace = known.metadata.namespace
        has_begun = known.said is not None or (before is not None and before.move is not None)
        if not has_begun and not self.has_room(namespace):
            here, in_all = self._under_way.of(namespace), self._under_way.total
            problem = f"{here} PodMoves are under way in this namespace, {in_all} in all"
            raise InvalidInput("", problem, "create it again once some of them have ended")

    def _remember(self, known: KnownMove) -> None:
        move = known.move
        if move is None:
            return
        self._of_seat[PodName(move.name.namespace, move.seat_name)] = move.name
        if move.status.replacement.uid:
            self.take(move.status.replacement.uid, move.name)
        if not move.is_over:
            for index, key in self._entries(move):
                index[key].add(move.name)
            self._open[move.name] = move
            self._under_way.add(move.name.namespace)
        elif key := _own_group(move):
            self._ended_in[key][move.name] = None

    def _forget(self, known: KnownMove | None) -> None:
        move = known.move if known else None
        if move is None:
            return
        self._of_seat.pop(PodName(move.name.namespace, move.seat_name), None)
        if not move.is_over:
            for index, key in self._entries(move):
                index[key].discard(move.name)
                if not index[key]:
                    del index[key]
            del self._open[move.name]
            self._under_way.add(move.name.namespace, -1)
        elif key := _own_group(move):
            del self._ended_in[key][move.name]
            if not self._ended_in[key]:
                del self._ended_in[key]

    def _entries(self, move: Move) -> Iterator[tuple[dict[Any, set[PodName]], Hashable]]:
        """Yield the indexes of an open move, each with the key of the move there."""
        for pod in _pods_of(move):
            yield self._of_pod, pod
        yield self._of_workload, workload_of(move)
        if move.status.phase is MovePhase.LANDING:
            yield self._landing_on, move.status.target
        if move.awaits_first:
            yield self._followers, first_name(move)


def _own_group(move: Move) -> tuple[str, str] | None:
    """Return the group of a move in its namespace; None without one, or if it spans namespaces."""
    group = move.spec.group
    return None if group == ALONE or group.across else (move.name.namespace, group.name)


def first_name(move: Move) -> PodName:
    """Return the name of the PodMove that a move follows."""
    return PodName(move.name.namespace, move.spec.after)


def workload_of(move: Move) -> Workload:
    """Return the controller of a move's pod, as the status has it."""
    return Workload(move.name.namespace, move.status.controller)


def _pods_of(move: Move) -> tuple[PodName, ...]:
    """Return the pods whose changes concern a move: its own, and a copy."""
    copy = PodName(move.name.namespace, move.copy_name)
    return (move.pod, copy) if move.may_have_copy else (move.pod,)


def first_of(move: Move, moves: MoveIndex) -> ObservedMove | None:
    """Return the move that a move follows; None without one."""
    known = moves.get(first_name(move))
    if known is None:
        return None
    first = known.move
    if first is None:
        return ObservedMove(
            MovePhase.FAILED, problem=f"the PodMove {move.spec.after}: {known.problem}"
        )
    status = first.status
    problem = "" if first.is_over else _endless(first, moves)
    if first.spec.pod != move.spec.pod:
        said = f"the PodMove {move.spec.after} moves the pod {first.spec.pod.name}"
        problem = f"{said}, and not {move.spec.pod.name}"
    return ObservedMove(status.phase, status.reason or "", _came(first), problem)


def _came(first: Move) -> Replacement:
    """Return the pod that a move has brought to its node: the replacement, or an entering pod."""
    status = first.status
    if status.phase is not MovePhase.SUCCEEDED or not first.is_entering:
        return status.replacement if status.phase is MovePhase.SUCCEEDED else Replacement()
    return Replacement(first.pod.name, status.uid, status.target)


def _endless(first: Move, moves: MoveIndex) -> str:
    """Return a message if too many moves follow each other, or form a cycle; else empty."""
    known: KnownMove | None
    for _ in range(MOST_IN_A_ROW - 1):
        if not first.awaits_first:
            return ""
        known = moves.get(first_name(first))
        if known is None or known.move is None:
            return ""
        first = known.move
    return f"more than {MOST_IN_A_ROW} PodMoves follow each other, or they form a cycle"
