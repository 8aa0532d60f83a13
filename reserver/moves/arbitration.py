"""Arbitration: the order of moves, and their turns within limits and budgets.

Limits bound evictions: a move counts from its turn to evict until its replacement has landed. Seats
are taken earlier, in the same order, so that a move whose seat waits for room that another move
frees (a chain) does not block that move. Names and defaults of the limits are those of
Koordinator's MigrationController (pkg/descheduler/controllers/migration). Each namespace has its
share of common limits (docs/adr/0061).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from math import inf
from typing import NamedTuple

from reserver.base.fairness import FairCount
from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.pod import NO_CONTROLLER, PodName
from reserver.moves.groups import Contender, Groups
from reserver.moves.model import ALONE, Declared, Move
from reserver.moves.observation import GO, MoveTurn
from reserver.moves.phases import SURGE_PHASES, MovePhase, MoveReason

STALLED_S = 120.0
"""Seconds after its eviction from which a move no longer delays moves of other namespaces."""

_FEW, _SOME = 4, 10


class MoveLimits(NamedTuple):
    """Limits on moves under way; None for no limit.

    Attributes:
        per_node: moves from one node of one namespace; of all namespaces, less than twice as many.
        per_namespace: moves of one namespace.
        globally: moves of all pods.
        workload_percent: percent of the pods of one workload, at least one pod; None for
            `most_of_workload`.
        ahead: moves of one namespace, without a group, that have a seat and have not evicted; of
            all namespaces, less than twice as many.
    """

    per_node: int | None = 2
    per_namespace: int | None = None
    ahead: int = 50
    globally: int | None = None
    workload_percent: int | None = None

    def of_workload(self, replicas: int) -> int:
        """Return the most pods of a workload that may move at once."""
        if self.workload_percent is None:
            return most_of_workload(replicas)
        return max(1, replicas * self.workload_percent // 100)


DEFAULT = MoveLimits()


class Ruling(NamedTuple):
    """The ruling of arbitration on a move: these fields of `Observation`."""

    turn: MoveTurn = GO
    rival: str = ""
    failed_member: str = ""
    is_needless: bool = False


def most_of_workload(replicas: int) -> int:
    """Return the most pods of a workload that may move: 1 under 4, 2 up to 10, then a tenth."""
    if replicas < _FEW:
        return 1
    return 2 if replicas <= _SOME else replicas // 10


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
    ordered = sorted(contenders, key=_order)
    yield
    open_ = [each for each in ordered if not each.move.is_over]
    groups = Groups(ordered, declared)
    yield
    ahead, under_way = _Ahead(budgets, limits, open_), _UnderWay(limits, open_, now)
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
            rulings[move.name] = Ruling(_WAIT, rival=str(rival.name))
            continue
        turn = _turn(each, groups, ahead, under_way)
        rulings[move.name] = Ruling(turn, "", groups.failed(move), groups.is_needless(move))
    return rulings


_WAIT = MoveTurn(may_begin=False, may_evict=False)


def _stage(move: Move) -> MovePhase:
    """Return the phase as which a move counts: a surging move counts as Evicting or Landing.

    From the start of its copy on it counts as Landing.
    """
    phase = move.status.phase
    if phase not in SURGE_PHASES:
        return phase
    return MovePhase.EVICTING if move.status.surged_at is None else MovePhase.LANDING


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
        namespace, phase = each.move.name.namespace, _stage(each.move)
        turns[namespace, MovePhase.EVICTING] += phase is MovePhase.LANDING
        turns[namespace, MovePhase.PENDING] += phase in {MovePhase.RESERVING, MovePhase.EVICTING}
    turn = dict[PodName, int]()
    for each in ordered:
        namespace, phase = each.move.name.namespace, _stage(each.move)
        turn[each.move.name] = turns[namespace, phase]
        turns[namespace, phase] += 1
    return sorted(ordered, key=lambda each: turn[each.move.name])


def _which(contender: Contender) -> tuple[PodName, str]:
    """Return the pod to move by name and UID; for a pod that has yet to come, the move itself."""
    move, pod = contender.move, contender.pod
    if move.awaits_first:
        return move.name, move.uid  # The pod has yet to come.
    return move.pod, move.status.uid or move.spec.uid or (pod.uid if pod else "")


def _turn(each: Contender, groups: Groups, ahead: _Ahead, under_way: _UnderWay) -> MoveTurn:
    move = each.move
    if move.awaits_first:
        return _WAIT
    if move.status.phase is MovePhase.LANDING:
        return GO
    window = groups.window(each)
    if window.why:
        opens_at = window.opens_at if window.opens_at < inf else 0.0
        return _WAIT._replace(why=window.why, opens_at=opens_at, waits_for_window=True)
    turn = _free_turn(each, groups, ahead, under_way)
    return turn._replace(closes_at=window.closes_at)


def _free_turn(each: Contender, groups: Groups, ahead: _Ahead, under_way: _UnderWay) -> MoveTurn:
    """Return the turn of a move whose window is open."""
    move = each.move
    if move.spec.paused or _stage(move) is MovePhase.LANDING:
        return GO  # A paused move does nothing by itself, and takes no turn.
    is_new, missing = move.status.phase is MovePhase.PENDING, groups.incomplete(move)
    if is_new and (turn := ahead.wait(each, missing)):
        return turn
    if _stage(move) is not MovePhase.EVICTING:
        return MoveTurn(may_evict=False)  # The eviction is judged only in its phase.
    unseated = groups.unseated(move)
    if why := unseated or under_way.refusal(each):
        return MoveTurn(may_evict=False, why=why, waits_for_group=bool(unseated))
    return GO


class _Ahead:
    """The moves that may take their seats before their turn to evict."""

    def __init__(
        self, budgets: Iterable[Budget], limits: MoveLimits, moves: list[Contender]
    ) -> None:
        self._budgets = Budgets(budgets)
        self._ahead = FairCount.each(limits.ahead)
        for each in moves:
            if _stage(each.move) in {MovePhase.RESERVING, MovePhase.EVICTING}:
                self._count(each)

    def wait(self, each: Contender, missing: str) -> MoveTurn | None:
        """Return the turn of a move that may not begin; None if it may, and then count it.

        The members of a group take their seats together; `missing` names those that have yet to
        come. Only their evictions follow one another as budgets allow. A surging pod needs none.
        """
        if missing:
            return _WAIT._replace(why=missing, waits_for_group=True)
        pod = each.pod if each.pod and each.pod.node and not each.move.is_surging else None
        if pod and (why := self._budgets.refusal(pod)):
            return _WAIT._replace(why=why, is_blocked=True)
        namespace = each.move.name.namespace
        if each.move.spec.group == ALONE and not self._ahead.has_room(namespace):
            own, total = self._ahead.of(namespace), self._ahead.total
            why = f"{own} moves of {namespace} must evict first, {total} in all"
            return _WAIT._replace(why=why)
        self._count(each)
        return None

    def _count(self, each: Contender) -> None:
        if each.move.spec.group == ALONE:
            self._ahead.add(each.move.name.namespace)
            move = each.move
            if each.pod is not None and not (move.is_entering or move.is_surging):
                self._budgets.spend(each.pod)


class _UnderWay:
    """The moves that may evict."""

    def __init__(self, limits: MoveLimits, moves: list[Contender], now: float) -> None:
        self._limits = limits
        self._now = now
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._leaving: dict[str, FairCount] = {}
        self._stalled: Counter[tuple[str, str]] = Counter()
        for each in moves:
            if _stage(each.move) is MovePhase.LANDING:
                self._count(each)

    def refusal(self, each: Contender) -> str:
        """Return why a move may not evict; empty if it may.

        A move that may is counted, unless a budget blocks it: then others may evict meanwhile.
        """
        for key, most, where in self._bounds(each):
            if most is not None and self._counts[key] >= most:
                return f"{self._counts[key]} moves {where} are under way, which is the limit"
        if why := self._crowded(each):
            return why
        if each.move.status.reason is not MoveReason.BUDGET_BLOCKS:
            self._count(each)
        return ""

    def _crowded(self, each: Contender) -> str:
        """Return why no more pods of the namespace may leave the node; empty if one may."""
        namespace, source = each.move.name.namespace, _source(each)
        leaving, stalled = self._leaving_from(source), self._stalled[source, namespace]
        if leaving is None or leaving.has_room(namespace, stalled):
            return ""
        own, total = leaving.of(namespace) + stalled, leaving.total + stalled
        return f"{total} moves from {source} are under way, {own} of them of {namespace}"

    def _count(self, each: Contender) -> None:
        self._counts.update(key for key, _, _ in self._bounds(each))
        namespace, source = each.move.name.namespace, _source(each)
        if is_stalled(each.move, self._now):
            self._stalled[source, namespace] += 1
        elif leaving := self._leaving_from(source):
            leaving.add(namespace)

    def _leaving_from(self, source: str) -> FairCount | None:
        """Return the count of moves that leave a node; None without a limit."""
        most = self._limits.per_node
        if most is None:
            return None
        return self._leaving.setdefault(source, FairCount.each(most))

    def _bounds(self, each: Contender) -> Iterator[tuple[tuple[str, ...], int | None, str]]:
        """Yield the counters of a move, each with its key, limit and name in messages."""
        namespace = each.move.name.namespace
        yield ("all",), self._limits.globally, "in all"
        yield ("namespace", namespace), self._limits.per_namespace, f"in {namespace}"
        if each.controller != NO_CONTROLLER:
            kind, name = each.controller
            most = self._limits.of_workload(each.replicas)
            yield ("workload", namespace, kind, name), most, f"of {kind} {name}"


def is_stalled(move: Move, now: float) -> bool:
    """Return whether a replacement is overdue by `STALLED_S` at `now` (unix seconds)."""
    left_at = move.status.evicted_at or move.status.surged_at
    return left_at is not None and abs(now - left_at) >= STALLED_S


def _source(each: Contender) -> str:
    return each.move.status.source or (each.pod.node if each.pod else "")
