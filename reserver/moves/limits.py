"""The limits on moves under way, and each namespace's part of them (docs/adr/0061).

A move counts from its turn to evict until its replacement has landed. Names and defaults are those
of Koordinator's MigrationController (pkg/descheduler/controllers/migration).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reserver.base.fairness import FairCount
from reserver.base.pacer import Steps
from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.pod import NO_CONTROLLER
from reserver.moves.groups import Contender
from reserver.moves.model import ALONE, Move
from reserver.moves.observation import MoveTurn
from reserver.moves.phases import SURGE_PHASES, MovePhase, MoveReason

STALLED_S = 120.0
"""Seconds after its eviction from which a move no longer delays moves of other namespaces."""

_FEW, _SOME = 4, 10


class MoveLimits(NamedTuple):
    """Limits on moves under way; None for no limit.

    Attributes:
        per_node: moves from one node of one namespace; of all namespaces, less than twice as many.
        per_namespace: moves of one namespace.
        globally: moves of all pods; one that has stalled counts in its namespace only.
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


def most_of_workload(replicas: int) -> int:
    """Return the most pods of a workload that may move: 1 under 4, 2 up to 10, then a tenth."""
    if replicas < _FEW:
        return 1
    return 2 if replicas <= _SOME else replicas // 10


WAIT = MoveTurn(may_begin=False, may_evict=False)


def stage(move: Move) -> MovePhase:
    """Return the phase as which a move counts: a surging move counts as Evicting or Landing.

    From the start of its copy on it counts as Landing.
    """
    phase = move.status.phase
    if phase not in SURGE_PHASES:
        return phase
    return MovePhase.EVICTING if move.status.surged_at is None else MovePhase.LANDING


class Ahead:
    """The moves that may take their seats before their turn to evict."""

    def __init__(self, limits: MoveLimits) -> None:
        """Begin without budgets and moves."""
        self._budgets = Budgets()
        self._ahead = FairCount.each(limits.ahead)

    def begin(self, budgets: Iterable[Budget], moves: Iterable[Contender]) -> Steps:
        """Add the budgets, and count the moves that hold seats."""
        for budget in budgets:
            self._budgets.add(budget)
            yield
        for each in moves:
            if stage(each.move) in {MovePhase.RESERVING, MovePhase.EVICTING}:
                self._count(each)  # The labels of its pod are compared with each budget.
                yield

    def wait(self, each: Contender, missing: str) -> MoveTurn | None:
        """Return the turn of a move that may not begin; None if it may, and then count it.

        The members of a group take their seats together; `missing` names those that have yet to
        come. Only their evictions follow one another as budgets allow. A surging pod needs none.
        """
        if missing:
            return WAIT._replace(why=missing, waits_for_group=True)
        pod = each.pod if each.pod and each.pod.node and not each.move.is_surging else None
        if pod and (why := self._budgets.refusal(pod)):
            return WAIT._replace(why=why, is_blocked=True)
        namespace = each.move.name.namespace
        if each.move.spec.group == ALONE and not self._ahead.has_room(namespace):
            own, total = self._ahead.of(namespace), self._ahead.total
            why = f"{own} moves of {namespace} must evict first, {total} in all"
            return WAIT._replace(why=why)
        self._count(each)
        return None

    def _count(self, each: Contender) -> None:
        if each.move.spec.group == ALONE:
            self._ahead.add(each.move.name.namespace)
            move = each.move
            if each.pod is not None and not (move.is_entering or move.is_surging):
                self._budgets.spend(each.pod)


class UnderWay:
    """The moves that may evict."""

    def __init__(self, limits: MoveLimits, moves: list[Contender], now: float) -> None:
        """Count the moves that have evicted; `now` is in unix seconds."""
        self._limits = limits
        self._now = now
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._leaving: dict[str, FairCount] = {}
        self._stalled: Counter[tuple[str, str]] = Counter()
        self._in_all = 0
        self._stalled_in_all: Counter[str] = Counter()
        for each in moves:
            if stage(each.move) is MovePhase.LANDING:
                self._count(each)

    def refusal(self, each: Contender) -> str:
        """Return why a move may not evict; empty if it may.

        A move that may is counted, unless a budget blocks it: then others may evict meanwhile.
        """
        for key, most, where in self._bounds(each):
            if most is not None and self._counts[key] >= most:
                return f"{self._counts[key]} moves {where} are under way, which is the limit"
        if why := self._full(each.move.name.namespace) or self._crowded(each):
            return why
        if each.move.status.reason is not MoveReason.BUDGET_BLOCKS:
            self._count(each)
        return ""

    def _full(self, namespace: str) -> str:
        """Return why no move of the namespace may evict, wherever its pod is; empty if one may.

        Who is alone has the whole limit. It keeps that from who comes new for `STALLED_S` at most,
        and then turns go around.
        """
        most, taken = self._limits.globally, self._in_all + self._stalled_in_all[namespace]
        if most is None or taken < most:
            return ""
        return f"{taken} moves in all are under way, and the limit is {most}"

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
            self._stalled_in_all[namespace] += 1
            return
        self._in_all += 1
        if leaving := self._leaving_from(source):
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
