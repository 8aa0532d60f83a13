"""Decides the PodMoves that empty a node in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.maintenance.model import Window
from reserver.moves.drain import Drain, DrainOptions, LeavingPod, Remedies
from reserver.moves.model import MAX_TIMEOUT_S, Move
from reserver.moves.phases import MoveMode, MovePhase, MoveReason

LABEL = "reserver.io/maintenance-window"
"""The label with the window's key on the PodMoves of a window."""

AGAIN_S = 60.0
"""Seconds from the end of a move to the next move of a pod that is still on the node."""

LEAST_TIMEOUT_S = 60.0
"""The shortest timeout of a move of a window, in seconds."""

KEPT_S = 3600
"""Seconds that the moves of a window are kept after their end."""

_NOT_EVICTED = frozenset(
    {MovePhase.PENDING, MovePhase.RESERVING, MovePhase.EVICTING, MovePhase.SURGING}
)

_IN_DOUBT = frozenset({MoveReason.READY_TO_EVICT, MoveReason.EVICTION_RETRIED})
"""The reasons of moves that may have evicted their pod, although the watch has not shown it."""


class WrittenMove(NamedTuple):
    """A PodMove that exists.

    Attributes:
        move: its spec and status.
        key: the key of its window; empty if no window created the PodMove.
        version: the resourceVersion.
    """

    move: Move
    key: str = ""
    version: str = ""

    @property
    def deletion(self) -> DeleteMove:
        """The effect that deletes it, unless it has changed."""
        return DeleteMove(self.move.name, self.move.uid, self.version)


@dataclass(frozen=True, slots=True)
class CreateMove:
    """Create a PodMove.

    Attributes:
        pod: the pod to move.
        mode: the precondition of the eviction: a seat, a ready copy, or none.
        timeout_s: the move's timeout, in seconds.
    """

    name: PodName
    pod: LeavingPod
    mode: MoveMode
    timeout_s: float


@dataclass(frozen=True, slots=True)
class DeleteMove:
    """Delete a PodMove as it was observed: by now it may have evicted its pod."""

    name: PodName
    uid: str
    version: str


MoveEffect = CreateMove | DeleteMove


def options(window: Window) -> DrainOptions:
    """Return the drain options of a window: which pods it may evict at a loss."""
    return DrainOptions(
        ignores_daemon_sets=True,
        deletes_empty_dirs=window.deletes_empty_dirs,
        evicts_unmanaged=window.allows_unseated,
        remedies=Remedies(
            unmanaged="allowUnseated: true has it evicted at the start",
            empty_dirs="deleteEmptyDirData: true moves it all the same",
        ),
    )


def emptying(
    window: Window,
    drain: Drain,
    moves_of: Callable[[PodName], Iterable[WrittenMove]],
    named: Callable[[PodName], WrittenMove | None],
    now: float,
) -> Iterator[MoveEffect]:
    """Yield the PodMoves to create and delete so that pods leave a node.

    Args:
        window: the window that has the node in hand.
        drain: the pods of the node.
        moves_of: returns the PodMoves of a pod.
        named: returns a PodMove by its name.
        now: unix seconds.
    """
    is_forced = window.allows_unseated and now >= window.period.start
    seated = MoveMode.SURGE_FIRST if window.surges else MoveMode.RESERVE_FIRST
    mode = MoveMode.EVICT_ONLY if is_forced else seated
    for pod in drain.leaving:
        if not pod.is_managed and not is_forced:
            continue  # No controller recreates the pod: let it run until the start.
        every = moves_of(PodName(pod.namespace, pod.name))
        under_way = [each for each in every if not each.move.gives_way]
        if under_way:
            for each in under_way:
                is_seated = each.move.spec.mode is not MoveMode.EVICT_ONLY
                if is_forced and each.key == window.key and is_seated and _has_not_evicted(each):
                    yield each.deletion
            continue
        name = PodName(pod.namespace, _name(window, pod, mode))
        before = named(name)
        if before is None:
            left_s = window.period.end - now
            yield CreateMove(name, pod, mode, min(max(left_s, LEAST_TIMEOUT_S), MAX_TIMEOUT_S))
        elif not 0 <= now - (before.move.status.finished_at or 0.0) < AGAIN_S:
            yield before.deletion


def leftovers(moves: Iterable[WrittenMove], in_hand: frozenset[str]) -> Iterator[DeleteMove]:
    """Yield the deletions of the moves of windows without nodes in hand.

    A move that may have evicted its pod continues: the replacement needs the seat.
    """
    for each in moves:
        if each.key and each.key not in in_hand and _has_not_evicted(each):
            yield each.deletion


def _has_not_evicted(written: WrittenMove) -> bool:
    status = written.move.status
    return status.phase in _NOT_EVICTED and status.reason not in _IN_DOUBT


def _name(window: Window, pod: LeavingPod, mode: MoveMode) -> str:
    """Return the name of the PodMove of a pod; a new leader computes the same name."""
    digest = blake2b(f"{window.key}/{pod.uid}/{mode}".encode(), digest_size=5).hexdigest()
    return f"{pod.name[:200].rstrip('-.')}-{digest}"
