"""Decides the goal of each node and the progress of each window."""

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

_STEP = 50
"""Nodes decided between two yields."""


class NodeLifecycle(NamedTuple):
    """The desired maintenance conditions of a node.

    Attributes:
        kinds: the types of the true conditions.
        message: the message of each condition.
    """

    kinds: frozenset[str] = frozenset()
    message: str = ""


class NodeGoal(NamedTuple):
    """The desired state of a node.

    Attributes:
        uses: the windows' records on the node.
        cordon: whether to cordon or uncordon the node; None leaves ``spec.unschedulable`` alone.
        lifecycle: the conditions.
    """

    uses: Uses
    cordon: bool | None = None
    lifecycle: NodeLifecycle = NodeLifecycle()


class NodeProgress(NamedTuple):
    """The phase of a node in a window, and the reason for waiting."""

    node: str
    phase: NodePhase
    message: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceDecision:
    """The goals of one pass.

    Attributes:
        goals: the goal of each node that a window concerns, by name.
        progress: the progress of each window's nodes, by the window's key.
        closures: the nodes that are closed for holds.
        next_at: next moment at which time alone changes a decision, unix seconds.
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
    """Decide the goals of all nodes, in steps; yields change no shared state.

    Args:
        now: unix seconds.
        unread: the UIDs of invalid windows: nodes that they have in hand stay as they are.
        not_ready_s: seconds that a node is not ready before holds leave the node; 0: holds stay.
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
    """Return the goal of a node; None if no window, or only an invalid one, concerns the node."""
    seen, turn = node.seen, active.get(node.holder)
    if turn is None and node.holder:
        return None  # An invalid window has the node in hand.
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
    """Return the progress of a node in a window."""
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
    """Return the closure of the nodes that a window has not taken in hand yet."""
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
    """Return the nodes of each closure: the nodes in `found`, and the nodes that are closed now."""
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
    """Yield the closures of a node, except those of coming windows."""
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
