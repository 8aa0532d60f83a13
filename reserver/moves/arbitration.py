"""Arbitration: the order of moves, and their turns within limits and budgets.

Limits bound evictions: a move counts from its turn to evict until its replacement has landed. Seats
are taken earlier, in the same order, so that a move whose seat waits for room that another move
frees (a chain) does not block that move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from math import inf
from typing import NamedTuple

from reserver.cluster.budgets import Budget
from reserver.cluster.pod import PodName
from reserver.moves.groups import Contender, Groups
from reserver.moves.limits import DEFAULT, WAIT, Ahead, MoveLimits, UnderWay, stage
from reserver.moves.model import Declared, Move
from reserver.moves.observation import GO, MoveTurn
from reserver.moves.phases import MovePhase


class Ruling(NamedTuple):
    """The ruling of arbitration on a move: these fields of `Observation`."""

    turn: MoveTurn = GO
    rival: str = ""
    failed_member: str = ""
    is_needless: bool = False


def arbitrate(
    contenders: Iterable[Contender],
    budgets: Iterable[Budget],
    declared: Declared,
    now: float,
    limits: MoveLimits = DEFAULT,
) -> Generator[None, None, dict[PodName, Ruling]]:
    """Decide the rulings on all open moves in steps, as of the first; other work may come between.

    Args:
        contenders: all moves, except moves that have ended together with their whole group.
        budgets: the disruptions that PodDisruptionBudgets allow now.
        declared: the groups that span namespaces.
        now: unix seconds.
        limits: the limits on moves under way.
    """
    open_, ended = list[Contender](), list[Contender]()
    for each in contenders:
        (ended if each.move.is_over else open_).append(each)
        yield
    open_.sort(key=_order)
    yield
    groups = Groups(declared)
    for each in (*open_, *ended):
        groups.add(each)
        yield
    ahead, under_way = Ahead(limits), UnderWay(limits, open_, now)
    yield from ahead.begin(budgets, open_)
    first: dict[tuple[PodName, str], Move] = {}
    for each in sorted(open_, key=lambda each: each.move.order):
        older = first.setdefault(_which(each), each.move)
        if each.move.spec.urgent and older.gives_way:
            first[_which(each)] = each.move
    yield
    rulings = {}
    for each in _by_turns(open_):
        yield
        move, rival = each.move, first[_which(each)]
        if rival is not move:
            rulings[move.name] = Ruling(WAIT, rival=str(rival.name))
            continue
        turn = _turn(each, groups, ahead, under_way)
        rulings[move.name] = Ruling(turn, "", groups.failed(move), groups.is_needless(move))
    return rulings


def _order(contender: Contender) -> tuple[int, float, str, str]:
    """Return the sort key of a move: the highest pod priority first, then the oldest."""
    move, pod = contender.move, contender.pod
    return -(pod.priority if pod else 0), *move.order


def _by_turns(ordered: list[Contender]) -> list[Contender]:
    """Sort moves so that each namespace has its first turn before any has its second.

    A begun move has used a turn to begin, and a move that has evicted a turn to evict.
    """
    turns: Counter[tuple[str, MovePhase]] = Counter()
    for each in ordered:
        namespace, phase = each.move.name.namespace, stage(each.move)
        turns[namespace, MovePhase.EVICTING] += phase is MovePhase.LANDING
        turns[namespace, MovePhase.PENDING] += phase in {MovePhase.RESERVING, MovePhase.EVICTING}
    turn = dict[PodName, int]()
    for each in ordered:
        namespace, phase = each.move.name.namespace, stage(each.move)
        turn[each.move.name] = turns[namespace, phase]
        turns[namespace, phase] += 1
    return sorted(ordered, key=lambda each: turn[each.move.name])


def _which(contender: Contender) -> tuple[PodName, str]:
    """Return the pod to move by name and UID; for a pod that has yet to come, the move itself."""
    move, pod = contender.move, contender.pod
    if move.awaits_first:
        return move.name, move.uid  # The pod has yet to come.
    return move.pod, move.status.uid or move.spec.uid or (pod.uid if pod else "")


def _turn(each: Contender, groups: Groups, ahead: Ahead, under_way: UnderWay) -> MoveTurn:
    move = each.move
    if move.awaits_first:
        return WAIT
    if move.status.phase is MovePhase.LANDING:
        return GO
    window = groups.window(each)
    if window.why:
        opens_at = window.opens_at if window.opens_at < inf else 0.0
        return WAIT._replace(why=window.why, opens_at=opens_at, waits_for_window=True)
    turn = _free_turn(each, groups, ahead, under_way)
    return turn._replace(closes_at=window.closes_at)


def _free_turn(each: Contender, groups: Groups, ahead: Ahead, under_way: UnderWay) -> MoveTurn:
    """Return the turn of a move whose window is open."""
    move = each.move
    if move.spec.paused or stage(move) is MovePhase.LANDING:
        return GO  # A paused move does nothing by itself, and takes no turn.
    is_new, missing = move.status.phase is MovePhase.PENDING, groups.incomplete(move)
    if is_new and (turn := ahead.wait(each, missing)):
        return turn
    if stage(move) is not MovePhase.EVICTING:
        return MoveTurn(may_evict=False)  # The eviction is judged only in its phase.
    unseated = groups.unseated(move)
    if why := unseated or under_way.refusal(each):
        return MoveTurn(may_evict=False, why=why, waits_for_group=bool(unseated))
    return GO
