"""Makes room for pods that fit nowhere, with few moves of others.

For each node in turn, some of its pods go elsewhere, and others make way for them (chains, swaps).
One move is tried on all nodes before two moves are tried, and so on, so that the first solution for
a pod has few moves. Several pods are solved one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from reserver.base.fairness import FairCount
from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.rebalance.improvement import improve
from reserver.rebalance.ordering import Order, Step, order, take_back
from reserver.rebalance.packing import DEPTH, Packing
from reserver.rebalance.plan import Bound, Kept, Plan, Why, named_to
from reserver.rebalance.plan_summary import plan_of
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.policy import NO_LIMITS
from reserver.rebalance.time_limit import TimeLimit
from reserver.scheduling.neighbours import rejects

MAKE_ROOM = "MakeRoom"

STEPS = 60_000
"""Most places that the search tries for the pods of a namespace; for all, less than twice that."""

MOST_MOVES = 6
"""Most moves of other pods for one pod."""

_START_SHARE = 0.2
"""The share of the time for one pod after the other."""

_SETS = 12
"""Most tried sets of pods of one node."""

_MOST_TOGETHER = 3
"""Most pods that leave one node, without pods that the new pod's rules exclude."""


_NO_WAY = f"no way was found to make room for it with {MOST_MOVES} moves or fewer"
_NO_WAY_IN_TIME = "the search ended before it found room; give it more --solver-seconds"
_NOTHING_MOVES = "no pod may be moved to make room for it"
_TOO_LARGE = "it requests more than any node has"
_NO_BETTER = "no plan makes room for more pods than this one"
_ALLOWED = ", with as many moves as the policy's maxNoOfPodsToEvict… or --most-moves allow"


class Room(NamedTuple):
    """The places of pods that get room, and the moves for them.

    Attributes:
        goals: the final row of each pod that moves or gets a node.
        without: the pods that get no node.
        fewest: no plan that makes room for the other pods has fewer moves.
    """

    goals: dict[int, int]
    without: tuple[int, ...]
    fewest: int


def make_room(
    planned: PlanningSnapshot, *, together: bool = False, limit: TimeLimit | None = None
) -> Plan:
    """Return the plan that makes room for the pods of a planning snapshot that are on no node.

    Args:
        planned: the cluster; as it is after all moves when this returns.
        together: all of them get room, or none does.
        limit: of the class model's search for a better plan; None for no such search.
    """
    wanted = list(map(int, np.flatnonzero(planned.rows == NOWHERE)))
    share = None if limit is None else limit.share(_START_SHARE)
    room = room_for(planned, wanted, together=together, limit=share)
    steps = order(planned, room.goals)
    if steps.stuck and planned.disruptions.limits != NO_LIMITS:
        room, steps = _within_limits(planned, room, steps, together=together)
    bound = Bound(fewest_moves=room.fewest, by="counting what pods request")
    most: int | None = None
    moved = sum(source != NOWHERE for _, source, _ in steps.steps)
    if limit is not None and wanted and (room.without or steps.stuck or moved > room.fewest):
        take_back(planned, steps.steps)
        known = () if steps.stuck else steps.steps
        room, steps, fewest, most = _improved(planned, wanted, known, limit, together=together)
        bound = bound.tightened(fewest, None, "HiGHS")
    landed = sum(source == NOWHERE for _, source, _ in steps.steps)
    why = _NO_WAY if limit is None else _NO_BETTER if landed == most else _NO_WAY_IN_TIME
    why = why if planned.movable.any() else _NOTHING_MOVES
    why += "" if planned.disruptions.limits == NO_LIMITS else _ALLOWED
    kept = [_kept(planned, number, why) for number in room.without]
    kept += [_kept(planned, number, why) for number, why in steps.stuck.items()]
    return plan_of(planned, steps, lambda n, _: _why(planned, wanted, n), kept=kept, bound=bound)


def _improved(
    planned: PlanningSnapshot,
    wanted: Sequence[int],
    known: Sequence[Step],
    limit: TimeLimit,
    *,
    together: bool,
) -> tuple[Room, Order, int | None, int | None]:
    """Return the class model's plan, a bound on its moves, and a bound on landed pods."""
    movable = planned.movable.copy()
    movable[wanted] = True
    nothing = np.zeros(0, dtype=np.intp)
    steps, most, fewest = improve(planned, known, movable, nothing, limit)
    without = tuple(number for number in wanted if planned.rows[number] == NOWHERE)
    if without and together:
        take_back(planned, steps)
        steps, without, fewest = (), tuple(wanted), None
    return Room({}, without, 0), Order(tuple(steps), {}), fewest, most


def _within_limits(
    planned: PlanningSnapshot, room: Room, steps: Order, *, together: bool
) -> tuple[Room, Order]:
    """Return room for fewer pods, such that all that has to move for them does.

    Who steps aside is evicted twice. Where that exceeds a limit, nobody is evicted for half a way.
    """
    without = list(room.without)
    while steps.stuck:
        take_back(planned, steps.steps)
        landing = [number for number in room.goals if planned.rows[number] == NOWHERE]
        dropped = [n for n in landing if n in steps.stuck] or landing[-1:]
        left = [] if together else [n for n in landing if n not in dropped]
        without += (number for number in landing if number not in left)
        room = room_for(planned, left, together=together)
        steps = order(planned, room.goals)
    return room._replace(without=(*without, *room.without)), steps


def room_for(
    planned: PlanningSnapshot,
    wanted: Sequence[int],
    *,
    together: bool = False,
    steps: int = STEPS,
    limit: TimeLimit | None = None,
) -> Room:
    """Return where pods get room with how few moves of others; `planned` stays as it was.

    Args:
        wanted: the pods that are to get a node.
        together: all of them get room, or none does.
        steps: how many places may be tried for a namespace alone.
        limit: of the search; None for as many places as it may try.
    """
    packing, places = Packing(planned, planned.movable, steps), FairCount.each(steps)
    without: list[int] = []
    fewest = 0
    failed = set[object]()
    for number in packing.by_size(wanted):
        least = int(_least_moves(planned, number, planned.movable).min())
        namespace = planned.pods[number].name.namespace
        allowed = packing.steps_left = places.left(namespace)
        if planned.kind(number) in failed or not _make_room(packing, number, least, limit):
            without.append(number)
            if not planned.pods[number].volume_claims:
                failed.add(planned.kind(number))
        else:
            fewest = max(fewest, least)
        places.add(namespace, allowed - packing.steps_left)
    if without and together:
        packing.back(0)
        return Room({}, tuple(wanted), 0)
    packing.settle_back()
    goals = packing.goals()
    packing.back(0)
    return Room(goals, tuple(without), fewest)


def _make_room(packing: Packing, number: int, least: int, limit: TimeLimit | None) -> bool:
    """Give a pod a node, with the fewest moves that are found; return whether there is one."""
    planned, before = packing.planned, packing.moved
    for most in range(least, MOST_MOVES + 1):
        needs = _least_moves(planned, number, packing.movable)
        rows = np.flatnonzero(needs <= most)
        for row in rows[np.argsort(needs[rows], kind="stable")]:
            for leaving in _sets(packing, number, int(row), most):
                if _instead_of(packing, number, int(row), leaving, before + most):
                    return True
                if packing.steps_left <= 0 or (limit is not None and limit.is_over):
                    return False
    return False


def _instead_of(packing: Packing, number: int, row: int, leaving: Sequence[int], most: int) -> bool:
    """Put a pod on a node that others leave, if they find other places with so few moves."""
    planned, mark = packing.planned, packing.mark()
    for other in leaving:
        if not packing.may_leave(other):
            packing.back(mark)
            return False
        packing.put(other, NOWHERE)
    if planned.targets(number)[row]:
        packing.put(number, row)
        spare = most - packing.moved
        others = packing.by_size(leaving)
        found = all(packing.insert(other, min(max(spare, 0), DEPTH)) for other in others)
        if found and packing.moved <= most:
            return True
    packing.back(mark)
    return False


def _sets(packing: Packing, number: int, row: int, most: int) -> Iterator[Sequence[int]]:
    """Yield sets of pods on a node without which another one has room there, small ones first."""
    planned = packing.planned
    there = planned.on(row)
    foes = [int(n) for n in there if _are_foes(planned, number, int(n))]
    if not all(packing.movable[n] for n in foes):
        return
    asked = np.flatnonzero(planned.requests[number])
    free = planned.free[row, asked] + planned.requests[foes][:, asked].sum(axis=0)
    lacking = planned.requests[number, asked] - free
    if np.all(lacking <= 0):
        yield foes
        return
    others = [int(n) for n in there[packing.movable[there]] if int(n) not in foes]
    for size in range(1, min(most - len(foes), _MOST_TOGETHER) + 1):
        sets = list(combinations(others, size))
        if not sets:
            return
        gained = planned.requests[np.array(sets)][:, :, asked].sum(axis=1)
        enough = np.flatnonzero(np.all(gained >= lacking, axis=1))
        waste = [packing.size_of(sets[index]) for index in enough]
        costs = [planned.costs[list(sets[index])].sum() for index in enough]
        for index in enough[np.lexsort((costs, waste))][:_SETS]:
            yield [*foes, *sets[index]]


def _least_moves(planned: PlanningSnapshot, number: int, movable: Bools) -> Int64s:
    """Return, for each row, how many pods have to leave it at least; too many if none can help.

    For each resource by itself, the pods that request most of it leave first.
    """
    size, wanted = len(planned.closed), planned.requests[number]
    never = MOST_MOVES + 1
    least = np.zeros(size, dtype=np.int64)
    there: Rows = np.flatnonzero(movable & (planned.rows != NOWHERE))
    for column in np.flatnonzero(wanted):
        lacking = wanted[column] - planned.free[:, column]
        order = there[np.lexsort((-planned.requests[there, column], planned.rows[there]))]
        rows = planned.rows[order]
        starts = np.searchsorted(rows, np.arange(size))
        sums = np.concatenate(([0], np.cumsum(planned.requests[order, column])))
        needed = np.full(size, never)
        needed[lacking <= 0] = 0
        ends = np.searchsorted(rows, np.arange(size), side="right")
        for leaving in range(MOST_MOVES, 0, -1):
            gained = sums[np.minimum(starts + leaving, ends)] - sums[starts]
            needed[(lacking > 0) & (gained >= lacking)] = leaving
        least = np.maximum(least, needed)
    if not planned.has_columns(number):
        least[:] = never
    may_go = planned.may_go(number)
    least[~may_go] = np.maximum(least, 1)[~may_go] if planned.has_company(number) else never
    least[planned.closed] = never
    return least


def _are_foes(planned: PlanningSnapshot, number: int, other: int) -> bool:
    """Return whether two pods may not be near each other, or want the same port."""
    one, two = planned.pods[number], planned.pods[other]
    ports = two.constraints.host_ports
    return (
        any(rejects(term, two, planned.snapshot) for term in one.constraints.anti_affinity)
        or any(rejects(term, one, planned.snapshot) for term in two.constraints.anti_affinity)
        or any(own.conflicts(port) for own in one.constraints.host_ports for port in ports)
    )


def _why(planned: PlanningSnapshot, wanted: Sequence[int], number: int) -> Why:
    landed = [planned.pods[n].name for n in wanted if planned.rows[n] != NOWHERE]
    many = f"{len(landed)} pending pods"
    told, named = many, many
    if len(landed) == 1:
        told, named = named_to(planned.pods[number].name, landed[0]), str(landed[0])
    return Why(MAKE_ROOM, reason=f"makes room for {told}", improves=f"room for {named}")


def _kept(planned: PlanningSnapshot, number: int, why: str) -> Kept:
    row = int(planned.rows[number])
    node = "" if row == NOWHERE else planned.snapshot.name_of(row)
    is_enough = (planned.snapshot.allocatable >= planned.requests[number]).all(axis=1)
    is_too_large = row == NOWHERE and not (is_enough & ~planned.closed).any()
    why = _TOO_LARGE if is_too_large else why
    return Kept(pod=planned.pods[number].name, node=node, strategy=MAKE_ROOM, why=why)
