"""Carries out MaintenanceWindows: cordons nodes, empties them, and uncordons them.

Each pass reads all windows and nodes anew, and all state is on the node: the window that has the
node in hand, whether the window cordoned the node, and its conditions. So a new leader continues
after a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

import structlog

from reserver.base.pacer import Pacer
from reserver.cluster.node import Node
from reserver.errors import ApiError
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import decode
from reserver.k8s.watch.reflector import Reflector
from reserver.k8s.work_queue import WorkQueue
from reserver.maintenance.codec import (
    COLLECTION,
    WINDOW,
    WindowObject,
    WindowStatusObject,
    path,
    refused,
    show_status,
)
from reserver.maintenance.decide import MaintenanceDecision, decide
from reserver.maintenance.emptying import LOOK_AGAIN_S, NodeEmptying
from reserver.maintenance.model import NodePhase, ObservedNode, Window
from reserver.maintenance.node_writes import is_due, write_node
from reserver.maintenance.observe import KnownWindow, KnownWindows, observed, turn_of
from reserver.maintenance.turns import Turn
from reserver.moves.index import MoveIndex
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)

_LOOK = "look"
_PAUSE_S = 0.5
"""Seconds between passes: changes come in bursts."""

_RETRY_S = 2.0
"""Seconds from a failure to the next pass."""

_LATEST_S = 60.0
"""Most seconds between passes: a clock that is corrected, or a machine that is resumed, skips time,
and a PodMove that could not be deleted may be deleted later."""

MOST_WRITES = 50
"""Most nodes that one pass writes."""

WindowsNow = Mapping[KnownWindow, Window | None]
"""Each window with its occurrence at one moment; None for an invalid window."""


class MaintenanceController(Listener):
    """Carries out MaintenanceWindows.

    Attributes:
        queue: contains a key while a pass is due.
        windows: all windows.
        reflector: the watch of the windows.
        counts: nodes of unfinished windows by phase.
        writes: nodes written so far.
    """

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        client: ApiClient,
        clock: Callable[[], float],
        state: State,
        moves: MoveIndex,
        recorder: Recorder,
        is_up_to_date: Callable[[], Awaitable[bool]],
        *,
        unsuited: Callable[[Ref, bool], None],
        not_ready_s: float,
    ) -> None:
        """Begin with no windows.

        Args:
            clock: unix seconds.
            moves: the observed PodMoves.
            recorder: writes an event for each change of a node's phase.
            is_up_to_date: waits until the watches have caught up; returns whether decisions are
                allowed.
            unsuited: called with the ref of each hold that has to leave its node, and False: its
                placement still applies.
            not_ready_s: seconds that a node is not ready before holds leave the node.
        """
        self._client, self._clock, self._state = client, clock, state
        self._emptying = NodeEmptying(client, moves, state.snapshot, self._note)
        self._recorder = recorder
        self._is_up_to_date = is_up_to_date
        self._unsuited = unsuited
        self._not_ready_s = not_ready_s
        self.queue = WorkQueue[str]("maintenance")
        self.windows = KnownWindows(lambda: self.queue.add(_LOOK))
        self.reflector = Reflector(client, COLLECTION, self.windows.view(), is_optional=True)
        self.counts: Mapping[NodePhase, int] = {}
        self.writes = 0
        self._nodes: dict[str, Node] = {}
        self._faults: set[str] = set()

    def on_node_changed(self, node: str) -> None:
        """Queue a pass if a node has changed."""
        if self._state.node(node) != self._nodes.get(node):
            self.queue.add(_LOOK, _PAUSE_S)

    async def run(self) -> None:
        """Carry out windows until cancelled; call after the first lists."""
        self.queue.add(_LOOK)
        await self.queue.passes(self.look, _PAUSE_S)

    async def look(self, pacer: Pacer) -> None:
        """Make one pass."""
        self.queue.take_all()
        faults, self._faults = self._faults, set()
        try:
            if await pacer.awaited(self._is_up_to_date()):
                await self._pass(pacer)
            else:
                self._faults = faults
                self.queue.add(_LOOK, _RETRY_S)
        except ApiError as exc:
            with suppress(ApiError):
                self._note(exc)
        for why in self._faults - faults:  # One line for each fault, not for each retry.
            log.warning("windows cannot be carried out, retrying", why=why)

    async def _pass(self, pacer: Pacer) -> None:
        windows = await self._windows_at(self._clock(), pacer)
        turns = await self._turns(filter(None, windows.values()), pacer)
        in_hand = self._in_hand(turns)
        await pacer.awaited(self._emptying.look(in_hand, self._clock()))
        nodes = self._nodes = self._known_nodes()
        seen = {}
        for name, node in nodes.items():
            seen[name] = observed(node, self._emptying.drain(name))
            await pacer.give_way()
        unread = frozenset(each.metadata.uid for each, window in windows.items() if window is None)
        limit_s = self._not_ready_s
        every = tuple(seen.values())
        decided_at = self._clock()
        search = decide(turns, every, decided_at, unread=unread, not_ready_s=limit_s)
        decision = await pacer.run(search)
        await self._close(decision, pacer)
        is_busy = await pacer.awaited(self._write_nodes(windows, decision, seen))
        await pacer.awaited(self._emptying.move(in_hand, self._clock()))
        self.counts = await self._write_statuses(windows, decision, decided_at, pacer)
        wait_s = LOOK_AGAIN_S if is_busy or in_hand else _LATEST_S
        wait_s = min(wait_s, decision.next_at - self._clock())
        if any(each.window.schedule and each.window.period.end <= decided_at for each in turns):
            wait_s = 0.0  # The window ended during this pass, and has another occurrence.
        self.queue.add(_LOOK, max(wait_s, _PAUSE_S))

    def _known_nodes(self) -> dict[str, Node]:
        names, node_of = self._state.snapshot.node_names(), self._state.node
        return {name: node for name in names if (node := node_of(name))}

    async def _windows_at(self, now: float, pacer: Pacer) -> WindowsNow:
        windows: dict[KnownWindow, Window | None] = {}
        for known in tuple(self.windows):
            windows[known] = known.window.at(now) if known.window else None
            await pacer.give_way()
        return windows

    async def _turns(self, windows: Iterable[Window], pacer: Pacer) -> list[Turn]:
        """Return the unfinished windows with their nodes."""
        nodes, now = list(self._known_nodes().values()), self._clock()
        unfinished = [window for window in windows if now < window.period.end]
        return [await pacer.run(turn_of(window, nodes)) for window in unfinished]

    def _in_hand(self, turns: Iterable[Turn]) -> dict[str, Window]:
        """Return the cordoned nodes that unfinished windows have in hand, each with its window."""
        windows = {turn.window.key: turn.window for turn in turns}
        seen = (observed(node, None) for node in self._known_nodes().values() if node.maintenance)
        return {
            each.name: windows[each.holder]
            for each in seen
            if each.is_cordoned and each.holder in windows
        }

    async def _close(self, decision: MaintenanceDecision, pacer: Pacer) -> None:
        """Close nodes for holds, and have placed holds leave vacated nodes."""
        state = self._state
        for node in state.closures.set(decision.closures):
            state.listener.on_node_changed(node)
            await pacer.give_way()
        for node in state.closures.vacated:
            await pacer.give_way()
            for part in tuple(state.ledger.holding_on(node)):
                reservation = state.ledger.get(part.ref)
                if reservation is not None and state.closures.leaving(reservation):
                    self._unsuited(reservation.ref, False)  # noqa: FBT003 - as `Core` has it

    async def _write_nodes(
        self, windows: WindowsNow, decision: MaintenanceDecision, seen: Mapping[str, ObservedNode]
    ) -> bool:
        """Write nodes that differ from their goals; return whether any node differed.

        Once a window has changed, the rest is left to the next pass: it may keep a node cordoned.
        """
        due = [name for name, goal in decision.goals.items() if is_due(goal, seen[name])]
        decided = _specs(windows)
        for name in due[:MOST_WRITES]:
            annotation = self._nodes[name].maintenance
            goal, now = decision.goals[name], self._clock()
            if _specs(self.windows) != decided:
                break
            try:
                if await write_node(self._client, seen[name], goal, annotation, now):
                    self.writes += 1
            except ApiError as exc:
                if not (exc.is_conflict or exc.is_absent):
                    self._note(exc)
        return bool(due)

    async def _write_statuses(
        self,
        windows: WindowsNow,
        decision: MaintenanceDecision,
        decided_at: float,
        pacer: Pacer,
    ) -> Mapping[NodePhase, int]:
        """Write the status of each window; return the number of nodes in each phase."""
        counts = Counter[NodePhase]()
        for known, window in windows.items():
            await pacer.give_way()
            generation = known.metadata.generation
            if window is None:
                assert known.problem is not None  # noqa: S101 - a window or its problem
                await pacer.awaited(self._write_status(known, refused(known.problem, generation)))
                continue
            progress = decision.progress.get(window.key, ())
            counts.update(each.phase for each in progress)
            before = {each.name: each.phase for each in known.said.nodes} if known.said else {}
            status = show_status(window, decided_at, progress, generation)
            await pacer.awaited(self._write_status(known, status))
            for each in progress if before else ():
                if each.node in before and before[each.node] != each.phase:
                    said = f"{each.node}: {each.message}" if each.message else each.node
                    self._recorder.note(known.metadata, f"Node{each.phase}", said, WINDOW)
        return counts

    async def _write_status(self, known: KnownWindow, status: WindowStatusObject) -> None:
        if status == known.said:
            return
        metadata = known.metadata
        version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {"metadata": version, "status": status}
        try:
            answer = await self._client.patch(f"{path(metadata.name)}/status", body)
        except ApiError as exc:
            if not (exc.is_conflict or exc.is_absent):
                self._note(exc)
            self.queue.add(_LOOK, _RETRY_S)
        else:
            self.windows.answered(known, decode(WindowObject, answer))

    def _note(self, error: ApiError) -> None:
        """Record a failure and queue a retry; raise the error if the API server is away."""
        core, own = "core/rbac-reserver", "components/maintenance/rbac"
        self._faults.add(advice(error).replace(core, own))
        self.queue.add(_LOOK, _RETRY_S)
        if error.is_away:
            raise error


def _specs(windows: Iterable[KnownWindow]) -> list[tuple[str, Window | None]]:
    """Return what decisions depend on: statuses change during each pass."""
    return [(each.metadata.uid, each.window) for each in windows]
