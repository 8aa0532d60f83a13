"""Orders the moves of a plan so that each has room when its turn comes.

Each moves once, when its new place has room; where pods wait for each other's places (a swap), one
of them goes through a free place first, and moves twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot

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


def order(
    planned: PlanningSnapshot,
    goals: Mapping[int, int],
    alike: Mapping[int, object] = MappingProxyType({}),
) -> Order:
    """Make pods move on a planning snapshot to where they are to be; return in which order.

    Args:
        planned: as it is before; as it is afterwards when this returns, with what its
            budgets allow then.
        goals: the row of the node that each of some pods is to be on.
        alike: the class of some pods: one may go where another one of its class was to go.
    """
    steps: list[Step] = []
    waiting = {number: row for number, row in goals.items() if planned.rows[number] != row}
    ways = (
        lambda n: _go(planned, n, waiting[n], steps),
        lambda n: _is_there(planned, n, waiting, alike),
        lambda n: _go_instead(planned, n, waiting, alike, steps),
    )
    while waiting:
        if not any(_take(waiting, way) for way in ways) and not _step_aside(
            planned, waiting, steps
        ):
            break
    return Order(tuple(steps), {n: _why(planned, n, row) for n, row in waiting.items()})


def _take(waiting: dict[int, int], is_done: Callable[[int], bool]) -> bool:
    """Take out the pods that are done; return whether there were any."""
    before = len(waiting)
    for number in list(waiting):
        if is_done(number):
            del waiting[number]
    return len(waiting) < before


def carry_out(planned: PlanningSnapshot, steps: Iterable[Step]) -> None:
    """Make pods move on a planning snapshot."""
    for number, source, target in steps:
        if source != NOWHERE:
            planned.disruptions.spend(planned.pods[number])
        planned.put(number, target)


def take_back(planned: PlanningSnapshot, steps: Sequence[Step]) -> None:
    """Undo what pods did on a planning snapshot."""
    for number, source, _ in reversed(steps):
        planned.put(number, source)
        if source != NOWHERE:
            planned.disruptions.give_back(planned.pods[number])


def _go(planned: PlanningSnapshot, number: int, row: int, steps: list[Step]) -> bool:
    """Make a pod move if it may and has room; return whether it did."""
    if not _may(planned, number, row):
        return False
    source = int(planned.rows[number])
    if source != NOWHERE:
        planned.disruptions.spend(planned.pods[number])
    steps.append(Step(number, source, row))
    planned.put(number, row)
    return True


def _is_there(
    planned: PlanningSnapshot, number: int, waiting: dict[int, int], alike: Mapping[int, object]
) -> bool:
    """Let a pod stay where another one of its class was to go, which goes to its place then."""
    class_, home = alike.get(number), planned.rows[number]
    if class_ is None:
        return False
    other = next((n for n, row in waiting.items() if row == home and alike.get(n) == class_), None)
    if other is None:
        return False
    waiting[other] = waiting[number]
    return True


def _go_instead(
    planned: PlanningSnapshot,
    number: int,
    waiting: dict[int, int],
    alike: Mapping[int, object],
    steps: list[Step],
) -> bool:
    """Make a pod go where another one of its class was to go, which goes to its place then."""
    class_ = alike.get(number)
    if class_ is None:
        return False
    others = (n for n in waiting if alike.get(n) == class_ and waiting[n] != waiting[number])
    targets: Bools | None = None
    for other in others:
        targets = planned.targets(number) if targets is None else targets
        if targets[waiting[other]] and _go(planned, number, waiting[other], steps):
            waiting[other] = waiting[number]
            return True
    return False


def _may(planned: PlanningSnapshot, number: int, row: int) -> bool:
    is_refused = planned.rows[number] != NOWHERE and planned.disruptions.refusal(
        planned.pods[number]
    )
    return not is_refused and bool(planned.targets(number)[row])


def _step_aside(
    planned: PlanningSnapshot,
    waiting: Mapping[int, int],
    steps: list[Step],
) -> bool:
    """Make one of those that wait for each other go where it is in nobody's way.

    Returns:
        Whether another one can move now.
    """
    goals = set(waiting.values())
    for number in waiting:
        home = int(planned.rows[number])
        others = [n for n, row in waiting.items() if row == home and n != number]
        places = np.flatnonzero(planned.targets(number)) if others and home != NOWHERE else ()
        in_order = sorted(map(int, places), key=lambda row: (row in goals, row))
        for row in in_order[: _places_to_try(planned, others)]:
            before = len(steps)
            if not _go(planned, number, row, steps):
                break
            if any(_may(planned, other, home) for other in others):
                return True
            steps[before:] = []
            planned.disruptions.give_back(planned.pods[number])
            planned.put(number, home)
            if row in goals:
                break  # Nor do the further ones help: what was missing is room at home.
    return False


def _places_to_try(planned: PlanningSnapshot, others: list[int]) -> int:
    """Return how many places one tries to step aside to: one if it does not matter who is where."""
    return MOST_PLACES if any(map(planned.has_company, others)) else 1


def _why(planned: PlanningSnapshot, number: int, row: int) -> str:
    refusal = planned.disruptions.refusal(planned.pods[number])
    node = planned.snapshot.name_of(row)
    return refusal or f"{node} has no room for it while other pods wait for its place"
