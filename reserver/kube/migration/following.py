"""The move that another one follows: whose replacement is to move on."""

from __future__ import annotations

from reserver.kube.migration.moves import KnownMove, Moves, first_name
from reserver.migration.move import MOST_IN_A_ROW, Move, Phase, Replacement
from reserver.migration.seen import SeenMove


def first_of(move: Move, moves: Moves) -> SeenMove | None:
    """Return the move that one follows; None if there is none."""
    known = moves.get(first_name(move))
    if known is None:
        return None
    first = known.move
    if first is None:
        return SeenMove(Phase.FAILED, problem=f"the PodMove {move.spec.after}: {known.problem}")
    status = first.status
    problem = "" if first.is_over else _endless(first, moves)
    if first.spec.pod != move.spec.pod:
        said = f"the PodMove {move.spec.after} moves the pod {first.spec.pod.name}"
        problem = f"{said}, and not {move.spec.pod.name}"
    return SeenMove(status.phase, status.reason or "", _came(first), problem)


def _came(first: Move) -> Replacement:
    """Return the pod that a move has brought to its node: it may be one that had none."""
    status = first.status
    if status.phase is not Phase.SUCCEEDED or not first.is_entering:
        return status.replacement if status.phase is Phase.SUCCEEDED else Replacement()
    return Replacement(first.pod.name, status.uid, status.target)


def _endless(first: Move, moves: Moves) -> str:
    """Return that too many moves await each other's pods, be it in a circle; else empty."""
    known: KnownMove | None
    for _ in range(MOST_IN_A_ROW - 1):
        if not first.awaits_first:
            return ""
        known = moves.get(first_name(first))
        if known is None or known.move is None:
            return ""
        first = known.move
    return f"more than {MOST_IN_A_ROW} PodMoves follow each other, or they do so in a circle"
