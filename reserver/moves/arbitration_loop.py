"""Repeats the arbitration of all PodMoves after each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import inf

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import NO_CONTROLLER, PodName
from reserver.k8s.objects.move_windows import MoveWindow
from reserver.k8s.work_queue import WorkQueue
from reserver.moves.arbitration import Ruling, arbitrate
from reserver.moves.groups import Contender, Key, key_of
from reserver.moves.index import MOST_ENDED, MoveIndex
from reserver.moves.known_budgets import KnownBudgets
from reserver.moves.limits import DEFAULT, STALLED_S, MoveLimits
from reserver.moves.model import Declared, Move
from reserver.moves.windows import ALWAYS, LOOK_AGAIN_S, UNKNOWN, MoveWindows
from reserver.moves.workloads import Workload, Workloads
from reserver.scheduling.state import State

_REST_S = 0.05
"""The least pause between two passes, in seconds: many moves change at once."""

_ALL = "all"


class ArbitrationLoop:
    """The turns of all PodMoves.

    Attributes:
        windows: the move windows of pods.
        limits: the limits on moves under way.
        budgets: the PodDisruptionBudgets.
        declared: the groups that span namespaces.
        queue: contains a key while a new arbitration is due.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        moves: MoveIndex,
        state: State,
        workloads: Workloads,
        again: Callable[[PodName], None],
    ) -> None:
        """Begin without rulings.

        Args:
            clock: unix seconds.
            workloads: the pods of each controller.
            again: called with each PodMove whose ruling has changed.
        """
        self._clock = clock
        self._moves = moves
        self._state = state
        self._workloads = workloads
        self._again = again
        self._rulings: dict[PodName, Ruling] = {}
        self.windows = MoveWindows(state.snapshot)
        self.limits = DEFAULT
        self.budgets = KnownBudgets(self.changed)
        self.declared: Declared = {}
        self.queue = WorkQueue[str]("turns")

    def of(self, name: PodName) -> Ruling | None:
        """Return the ruling on a PodMove; None before the first one, or after the move's end."""
        return self._rulings.get(name)

    def may_begin(self, move: Move) -> bool:
        """Return whether the last ruling allows a move to begin."""
        ruling = self._rulings.get(move.name)
        return ruling is not None and ruling.turn.may_begin

    def changed(self) -> None:
        """Queue a new arbitration; returns at once."""
        self.queue.add(_ALL)

    def allow(self, windows: tuple[MoveWindow, ...], limits: MoveLimits) -> None:
        """Set the windows and limits of the configuration."""
        self.windows.configured, self.limits = windows, limits
        self.changed()

    async def run(self) -> None:
        """Arbitrate until cancelled."""
        await self.queue.passes(self.look, _REST_S)

    async def look(self, pacer: Pacer) -> None:
        """Arbitrate all moves at this moment."""
        self.queue.take_all()
        before = self._rulings
        contenders = []
        for contender in self._contenders():
            contenders.append(contender)
            await pacer.give_way()
        asked_at, declared = self._clock(), dict(self.declared)
        steps = arbitrate(contenders, self.budgets.all(), declared, asked_at, self.limits)
        self._rulings = await pacer.run(steps)
        for name, ruling in self._rulings.items():
            if before.get(name) != ruling:
                self._again(name)
                await pacer.give_way()
        statuses = (each.move.status for each in contenders if not each.move.is_over)
        left_at = (status.evicted_at or status.surged_at for status in statuses)
        stall = [at + STALLED_S - asked_at for at in left_at if at is not None]
        stall += [after_s for each in contenders for after_s in _changes(each, asked_at)]
        if due := [after_s for after_s in stall if after_s > 0]:
            self.queue.add(_ALL, min(due))

    def _contenders(self) -> Iterator[Contender]:
        """Yield the open moves, and the ended members of their groups."""
        open_, groups = self._moves.open(), set[Key]()
        for move in open_.values():
            if key := key_of(move, self.declared):
                groups.add(key)
            yield self._contender(move)
        left = {namespace: MOST_ENDED for namespace, _ in groups}
        for key in sorted(groups, key=lambda key: (len(self._moves.ended_in(*key)), key)):
            for move in self._ended(key, left[key[0]]):
                left[key[0]] -= bool(key[0])  # Who lists members bounds them.
                if move.name not in open_:  # It has not ended meanwhile.
                    yield Contender(move=move)

    def _ended(self, key: Key, most: int) -> Iterator[Move]:
        """Yield the ended members of a group, of a group of a namespace `most` at most."""
        namespace, group = key
        names = list(islice(reversed(self._moves.ended_in(namespace, group)), most))
        if not namespace:
            names = [each.move for each in self.declared.get(group, ())]
        for name in names:
            known = self._moves.get(name)
            move = known.move if known else None
            if move is not None and move.is_over and key_of(move, self.declared) == key:
                yield move

    def _contender(self, move: Move) -> Contender:
        pod = None if move.awaits_first else self._state.pods.get(move.pod)
        wanted = move.status.uid or move.spec.uid
        if pod is not None and wanted not in {"", pod.uid}:
            pod = None
        controller = move.status.controller
        if controller == NO_CONTROLLER and pod is not None:
            controller = pod.controller
        owner = Workload(move.name.namespace, controller)
        replicas = 0 if controller == NO_CONTROLLER else self._workloads.count(owner)
        window = ALWAYS
        if pod is not None and pod.node and not move.spec.urgent:
            window = UNKNOWN  # A fault in its window affects no other move.
            with quarantined("move", str(move.name)):
                window = self.windows.of(pod, self._clock())
        return Contender(
            move=move, pod=pod, controller=controller, replicas=replicas, window=window
        )


def _changes(each: Contender, asked_at: float) -> Iterator[float]:
    """Yield the seconds until the window of a move may change; a corrected clock skips time."""
    window = each.window
    changes_at = window.opens_at if window.why else window.closes_at
    if window.why or changes_at < inf:
        yield min(LOOK_AGAIN_S, max(changes_at - asked_at, _REST_S))
