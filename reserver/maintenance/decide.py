"""Decides on nodes and windows: how each node is to be, and how far each window is."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from reserver.k8s.objects.times import show_moment
from reserver.maintenance.model import (
    DRAINED,
    DRAINING,
    IN_PROGRESS,
    PLANNED,
    PLANNED_AHEAD_S,
    NodePhase,
    ObservedNode,
    Uses,
    Window,
    WindowUse,
)
from reserver.maintenance.turns import NodeTurn, Turn, settled, take
from reserver.moves.drain import BEING_DELETED
from reserver.scheduling.closures import Closure, NodesByClosure

IN_HAND = "were in maintenance"
COMING = "had maintenance planned"
BY_OTHERS = "had a condition of maintenance"
NOT_READY = "were not ready for a while"

_STEP = 200
"""So many nodes are decided on in one step."""


class NodeLifecycle(NamedTuple):
    """The conditions of its maintenance that a node is to have.

    Attributes:
        kinds: those that are true.
        message: of each.
    """

    kinds: frozenset[str] = frozenset()
    message: str = ""


class NodeGoal(NamedTuple):
    """How a node is to be.

    Attributes:
        uses: what windows have done with it.
        cordon: whether it is to be cordoned; None where that is not theirs to decide.
        lifecycle: its conditions.
    """

    uses: Uses
    cordon: bool | None = None
    lifecycle: NodeLifecycle = NodeLifecycle()


class NodeProgress(NamedTuple):
    """How far a window is with a node, and what it waits for."""

    node: str
    phase: NodePhase
    message: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceDecision:
    """What is to be.

    Attributes:
        goals: how nodes are to be, by name.
        progress: how far each window is, by its key.
        closures: the nodes that are closed for holds.
        next_at: when time alone changes something, unix seconds.
    """

    goals: Mapping[str, NodeGoal]
    progress: Mapping[str, tuple[NodeProgress, ...]]
    closures: NodesByClosure
    next_at: float = inf


def decide(
    turns: Iterable[Turn],
    nodes: Sequence[ObservedNode],
    now: float,
    *,
    unread: frozenset[str] = frozenset(),
    not_ready_s: float = 0.0,
) -> Generator[None, None, MaintenanceDecision]:
    """Find how nodes are to be; other work may come between the steps, and sees nothing of it.

    Args:
        now: unix seconds.
        unread: the UIDs of windows that cannot be read: what they have in hand stays as it is.
        not_ready_s: how long a node is not ready before holds leave it, in seconds; 0: they stay.
    """
    coming = (turn for turn in turns if turn.window.period.end > now)
    open_ = sorted(coming, key=lambda turn: (turn.window.period.start, turn.window.name))
    active = {turn.window.key: turn for turn in open_ if turn.window.drain_at <= now}
    by_name: dict[str, NodeTurn] = {}
    for node in nodes:
        by_name[node.name] = settled(node, active, unread)
        if len(by_name) % _STEP == 0:
            yield
    for turn in active.values():
        take(turn, by_name)
        yield
    closed: dict[Closure, set[str]] = {}
    for turn in open_:
        yield
        if now >= turn.window.drain_at - PLANNED_AHEAD_S:
            for name in turn.members:
                by_name[name].planned.append(turn.window)
            closed.setdefault(_coming(turn), set()).update(_untouched(turn, by_name))
    progress = {}
    for window, members in open_:
        progress[window.key] = tuple(_progress(window, by_name[name], now) for name in members)
        yield
    goals = yield from _goals(by_name, active, now)
    closures = yield from _closed(closed, by_name.values(), active, now, not_ready_s)
    return MaintenanceDecision(goals, progress, closures, _next_at(open_, nodes, now, not_ready_s))


def _goals(
    nodes: Mapping[str, NodeTurn], active: Mapping[str, Turn], now: float
) -> Generator[None, None, dict[str, NodeGoal]]:
    goals = {}
    for number, (name, node) in enumerate(nodes.items()):
        if goal := _goal(node, active, now):
            goals[name] = goal
        if number % _STEP == 0:
            yield
    return goals


def _goal(node: NodeTurn, active: Mapping[str, Turn], now: float) -> NodeGoal | None:
    """Return how a node is to be; None for one that no window has anything to do with."""
    seen, turn = node.seen, active.get(node.holder)
    if turn is None and node.holder:
        return None  # Of a window that cannot be read.
    cordon = None
    if turn is not None:
        cordon = True
    elif node.released is WindowUse.CORDONED and not node.holder:
        cordon = False
    lifecycle = NodeLifecycle()
    if turn is not None:
        lifecycle = NodeLifecycle(frozenset(_kinds(turn.window, node, now)), _times(turn.window))
    else:
        planned = (window for window in node.planned if window.key not in node.uses)
        if first := next(planned, None):
            lifecycle = NodeLifecycle(frozenset({PLANNED}), _times(first))
    is_idle = not node.uses and not seen.is_marked and not lifecycle.kinds
    return None if is_idle else NodeGoal(node.uses, cordon, lifecycle)


def _kinds(window: Window, node: NodeTurn, now: float) -> Iterator[str]:
    phase = _progress(window, node, now).phase
    if phase is not NodePhase.IN_MAINTENANCE:
        yield PLANNED
    if phase is NodePhase.DRAINING:
        yield DRAINING
    else:
        yield DRAINED
    if phase is NodePhase.IN_MAINTENANCE:
        yield IN_PROGRESS


def _times(window: Window) -> str:
    start, end = map(show_moment, window.period)
    return f"{window.name}, from {start} to {end}"


def _progress(window: Window, node: NodeTurn, now: float) -> NodeProgress:
    """Return how far a window is with a node."""
    name, use = node.seen.name, node.uses.get(window.key)
    if now < window.drain_at:
        return NodeProgress(name, NodePhase.PLANNED)
    if use is WindowUse.DONE:
        return NodeProgress(name, NodePhase.DONE)
    if use is None:
        why = "another window has it" if node.holder else "too many other nodes are unavailable"
        return NodeProgress(name, NodePhase.WAITING, why)
    drain = None if node.taken else node.seen.drain
    if drain is None:
        return NodeProgress(name, NodePhase.DRAINING)
    ending = sum(each.why == BEING_DELETED for each in drain.staying)
    left = len(drain.leaving) + len(drain.refused) + ending
    if left:
        pods = "1 pod is" if left == 1 else f"{left} pods are"
        refused = [f"{each.namespace}/{each.name}: {each.why}" for each in drain.refused[:1]]
        return NodeProgress(name, NodePhase.DRAINING, "; ".join([f"{pods} left", *refused]))
    has_started = now >= window.period.start
    return NodeProgress(name, NodePhase.IN_MAINTENANCE if has_started else NodePhase.DRAINED)


def _coming(turn: Turn) -> Closure:
    """Return what closes nodes that a window has not had in hand yet."""
    since, end = turn.window.drain_at, turn.window.period.end
    return Closure(COMING, since=since, until=end, is_firm=not turn.is_rolling)


def _untouched(turn: Turn, nodes: Mapping[str, NodeTurn]) -> Iterator[str]:
    key = turn.window.key
    return (name for name in turn.members if key not in nodes[name].uses)


def _closed(
    found: dict[Closure, set[str]],
    nodes: Iterable[NodeTurn],
    active: Mapping[str, Turn],
    now: float,
    not_ready_s: float,
) -> Generator[None, None, NodesByClosure]:
    """Return the nodes of each closure: those that were found, and what closes each node now."""
    for number, each in enumerate(nodes):
        for closure in _closures(each, active, now, not_ready_s):
            found.setdefault(closure, set()).add(each.seen.name)
        if number % _STEP == 0:
            yield
    closures = {}
    for closure, names in found.items():
        if names:
            closures[closure] = frozenset(names)
        yield
    return closures


def _closures(
    node: NodeTurn, active: Mapping[str, Turn], now: float, not_ready_s: float
) -> Iterator[Closure]:
    """Yield what closes a node beside windows that are to come."""
    seen, holder = node.seen, active.get(node.holder)
    if holder is not None:
        yield Closure(IN_HAND, until=holder.window.period.end, is_vacated=True)
    if seen.is_maintained_by_others:
        yield Closure(BY_OTHERS, is_vacated=True)
    since_not_ready = seen.not_ready_since
    if not_ready_s and since_not_ready is not None and now >= since_not_ready + not_ready_s:
        yield Closure(NOT_READY, is_vacated=True)


def _next_at(
    open_: Iterable[Turn], nodes: Iterable[ObservedNode], now: float, not_ready_s: float
) -> float:
    moments = [
        at
        for turn in open_
        for at in (
            turn.window.drain_at - PLANNED_AHEAD_S,
            turn.window.drain_at,
            *turn.window.period,
        )
    ]
    if not_ready_s:
        since = (node.not_ready_since for node in nodes if node.not_ready_since is not None)
        moments += [at + not_ready_s for at in since]
    return min((at for at in moments if at > now), default=inf)
