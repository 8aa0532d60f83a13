"""Orders the moves of a plan so that each has room when its turn comes.

Each moves once, when its new place has room; where pods wait for each other's places (a swap), one
of them goes through a free place first, and moves twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reserver.rebalance.board import NOWHERE, Board
from reserver.rebalance.disruptions import Disruptions

MOST_PLACES = 8
"""Places that a pod tries to step aside to: after so many it is hardly for want of a place."""


class Step(NamedTuple):
    """A pod, by its number, goes from the node of one row, or from none, to that of another."""

    number: int
    source: int
    target: int


class Order(NamedTuple):
    """The moves that could be ordered, and the pods that are stuck.

    Attributes:
        steps: each has room when its turn comes.
        stuck: the pods that do not get where they are to be, and why.
    """

    steps: tuple[Step, ...]
    stuck: Mapping[int, str]


def order(board: Board, goals: Mapping[int, int], disruptions: Disruptions) -> Order:
    """Make pods move on a board to where they are to be; return in which order.

    Args:
        board: as it is before; as it is afterwards when this returns.
        goals: the row of the node that each of some pods is to be on.
        disruptions: what budgets allow; what the steps take is spent.
    """
    steps: list[Step] = []
    waiting = {number: row for number, row in goals.items() if board.rows[number] != row}
    while waiting:
        done = [n for n in list(waiting) if _go(board, n, waiting[n], disruptions, steps)]
        for number in done:
            del waiting[number]
        if not done and not _step_aside(board, waiting, disruptions, steps):
            break
    return Order(tuple(steps), {n: _why(board, n, row, disruptions) for n, row in waiting.items()})


def take_back(board: Board, order: Order, disruptions: Disruptions) -> None:
    """Undo what pods did on a board."""
    for number, source, _ in reversed(order.steps):
        board.put(number, source)
        if source != NOWHERE:
            disruptions.give_back(board.pods[number])


def _go(board: Board, number: int, row: int, disruptions: Disruptions, steps: list[Step]) -> bool:
    """Make a pod move if it may and has room; return whether it did."""
    if not _may(board, number, row, disruptions):
        return False
    source = int(board.rows[number])
    if source != NOWHERE:
        disruptions.spend(board.pods[number])
    steps.append(Step(number, source, row))
    board.put(number, row)
    return True


def _may(board: Board, number: int, row: int, disruptions: Disruptions) -> bool:
    is_refused = board.rows[number] != NOWHERE and disruptions.refusal(board.pods[number])
    return not is_refused and bool(board.targets(number)[row])


def _step_aside(
    board: Board, waiting: Mapping[int, int], disruptions: Disruptions, steps: list[Step]
) -> bool:
    """Make one of those that wait for each other go where it is in nobody's way.

    Returns:
        Whether another one can move now.
    """
    goals = set(waiting.values())
    for number in waiting:
        home = int(board.rows[number])
        others = [n for n, row in waiting.items() if row == home and n != number]
        places = np.flatnonzero(board.targets(number)) if others and home != NOWHERE else ()
        in_order = sorted(map(int, places), key=lambda row: (row in goals, row))
        for row in in_order[: _places_to_try(board, others)]:
            before = len(steps)
            if not _go(board, number, row, disruptions, steps):
                break
            if any(_may(board, other, home, disruptions) for other in others):
                return True
            steps[before:] = []
            disruptions.give_back(board.pods[number])
            board.put(number, home)
            if row in goals:
                break  # Nor do the further ones help: what was missing is room at home.
    return False


def _places_to_try(board: Board, others: list[int]) -> int:
    """Return how many places one tries to step aside to: one if it does not matter who is where."""
    return MOST_PLACES if any(map(board.has_company, others)) else 1


def _why(board: Board, number: int, row: int, disruptions: Disruptions) -> str:
    refusal = disruptions.refusal(board.pods[number])
    node = board.snapshot.name_of(row)
    return refusal or f"{node} has no room for it while other pods wait for its place"
