"""Orders the moves of a plan so that each has room when its turn comes.

Each moves once, when its new place has room. First those move that take no room that another one
needs earlier. Where pods wait for each other's places (a swap), some of them go through free places
first, and move twice.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.scheduling.neighbours import rejects

MOST_PLACES = 8
"""Places that a pod tries to step aside to: after so many it is hardly for want of a place."""

_MOST_ASIDE = 3
"""Most pods that step aside at the same time to let another pod move."""

_MOST_SETS = 20


class Step(NamedTuple):
    """A move of a pod, by its number, from one row (or from no node) to another."""

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
    company = _company(planned, waiting)
    ways: tuple[Callable[[], bool], ...] = (
        lambda: _go_safely(planned, waiting, company, steps),
        lambda: _go_first(planned, waiting, company, steps),
        lambda: _take(waiting, lambda n: _is_there(planned, n, waiting, alike)),
        lambda: _take(waiting, lambda n: _go_instead(planned, n, waiting, alike, steps)),
        lambda: _step_aside(planned, waiting, steps),
    )
    while waiting and any(way() for way in ways):
        pass
    return Order(tuple(steps), {n: _why(planned, n, row) for n, row in waiting.items()})


def interchangeable(planned: PlanningSnapshot, goals: Mapping[int, int]) -> dict[int, object]:
    """Return the class of each pod that may go where another one of its class was to go."""
    return {
        number: (planned.kind(number), bool(planned.rows[number] == NOWHERE))
        for number in goals
        if not planned.pods[number].volume_claims
    }


def _company(planned: PlanningSnapshot, waiting: Iterable[int]) -> frozenset[int]:
    """Return the pods that others need near them where they go: these had better go first."""
    pods = planned.pods
    terms = {term for number in waiting for term in pods[number].constraints.affinity}
    return frozenset(
        number
        for number in waiting
        if any(rejects(term, pods[number], planned.snapshot) for term in terms)
    )


def _go_safely(
    planned: PlanningSnapshot,
    waiting: dict[int, int],
    company: Container[int],
    steps: list[Step],
) -> bool:
    """Make all pods move whose new nodes have room for all that are to come; return if any did.

    The company of others stays for now, unless nobody else waits.
    """
    numbers = np.fromiter(waiting, dtype=np.intp)
    rows, at = np.unique(np.fromiter(waiting.values(), dtype=np.intp), return_inverse=True)
    coming = np.zeros((len(rows), planned.free.shape[1]), dtype=np.int64)
    np.add.at(coming, at, planned.requests[numbers])
    has_room = np.all((planned.free[rows] >= coming) | (coming == 0), axis=1)
    is_safe = dict(zip(rows.tolist(), has_room.tolist(), strict=True))
    stays = company if any(number not in company for number in waiting) else ()
    safe = [number for number, row in waiting.items() if is_safe[row] and number not in stays]
    return _take(waiting, lambda n: _go(planned, n, waiting[n], steps), safe)


def _go_first(
    planned: PlanningSnapshot,
    waiting: dict[int, int],
    company: Container[int],
    steps: list[Step],
) -> bool:
    """Make one pod move, best from where another one is to come, and the company of others last."""
    goals = set(waiting.values())
    for number in sorted(waiting, key=lambda n: (n in company, int(planned.rows[n]) not in goals)):
        if _go(planned, number, waiting[number], steps):
            del waiting[number]
            return True
    return False


def _take(
    waiting: dict[int, int], is_done: Callable[[int], bool], numbers: Iterable[int] | None = None
) -> bool:
    """Take out the pods that are done, of some or of all; return whether there were any."""
    before = len(waiting)
    for number in list(waiting) if numbers is None else numbers:
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
    wanted = planned.requests[number]
    if np.any((planned.free[row] < wanted) & (wanted > 0)):
        return False  # As `targets` would say, which looks at all nodes.
    return not _refusal(planned, number) and bool(planned.targets(number)[row])


def _refusal(planned: PlanningSnapshot, number: int) -> str:
    is_pending = planned.rows[number] == NOWHERE
    return "" if is_pending else planned.disruptions.refusal(planned.pods[number])


def _step_aside(planned: PlanningSnapshot, waiting: dict[int, int], steps: list[Step]) -> bool:
    """Make a pod move that waits for others, which go where they are in nobody's way until then.

    Returns:
        Whether there was one.
    """
    leaving: dict[int, list[int]] = {}
    for number in waiting:
        leaving.setdefault(int(planned.rows[number]), []).append(number)
    goals = set(waiting.values())
    for size in range(1, _MOST_ASIDE + 1):
        for number, row in reversed(list(waiting.items())):
            if row not in leaving or _refusal(planned, number):
                continue
            for aside in _sets_aside(planned, number, row, leaving[row], size):
                if _after_others(planned, number, row, aside, goals, steps):
                    del waiting[number]
                    return True
    return False


def _sets_aside(
    planned: PlanningSnapshot, number: int, row: int, leaving: Iterable[int], size: int
) -> Iterator[tuple[int, ...]]:
    """Yield some sets of pods that leave a node, without which another one has room there."""
    wanted = planned.requests[number]
    lacking = np.where(wanted > 0, wanted - planned.free[row], 0)
    others = (other for other in leaving if other != number)
    for aside in islice(combinations(others, size), _MOST_SETS):
        if np.all(planned.requests[list(aside)].sum(axis=0) >= lacking):
            yield aside


def _after_others(
    planned: PlanningSnapshot,
    number: int,
    row: int,
    aside: Sequence[int],
    goals: set[int],
    steps: list[Step],
) -> bool:
    """Make a pod move after some others have stepped aside; return whether it did."""
    if not aside:
        return _go(planned, number, row, steps)
    other, *others = aside
    places = np.flatnonzero(planned.targets(other)).tolist()
    in_order = sorted(places, key=lambda place: (place in goals, place))
    # Who is where matters to a pod that minds company.
    most = MOST_PLACES if planned.has_company(number) and not others else 1
    for place in in_order[:most]:
        if not _go(planned, other, place, steps):
            return False
        if _after_others(planned, number, row, others, goals, steps):
            return True
        take_back(planned, [steps.pop()])
    return False


def _why(planned: PlanningSnapshot, number: int, row: int) -> str:
    refusal = planned.disruptions.refusal(planned.pods[number])
    node = planned.snapshot.name_of(row)
    return refusal or f"{node} has no room for it while other pods wait for its place"
