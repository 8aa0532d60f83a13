"""The controller of PodMoves: observes, decides, writes the status, executes the effects.

An effect is executed only once the status that it follows from is written, by a step that changes
nothing else. So no write lies between observation and effect, and after a crash the status shows
at least as much as was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, Fault
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.work_queue import WorkQueue
from reserver.moves.advance import MoveStep, advance
from reserver.moves.arbitration import Ruling
from reserver.moves.arbitration_loop import ArbitrationLoop
from reserver.moves.declared_groups import DeclaredGroups
from reserver.moves.execute import Executor
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.model import Move
from reserver.moves.observation import EffectResult
from reserver.moves.observe import Observer
from reserver.moves.phases import MovePhase
from reserver.moves.podmove import MoveObject, path, status_path
from reserver.moves.podmove_status import StatusObject, refused, show_status
from reserver.moves.surge_pods import SurgeRemains
from reserver.moves.surges import Surges
from reserver.moves.transitions import is_news
from reserver.moves.workloads import WantedPods, Workloads, workload
from reserver.reservations.enums import StoreKind
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache

log = structlog.get_logger(__name__)

LOOK_AGAIN_S = 5.0
"""The longest time between two observations of a move that has begun, in seconds: no watch reports
some of its dependencies, such as the replicas of its controller."""

_AT_ONCE = 8
"""Concurrent steps; bindings have the rest of the connections."""


class MoveController(Listener):
    """Carries out PodMoves.

    Attributes:
        queue: the PodMoves that may have a next step.
        arbitration: decides the turns of PodMoves.
        writes: statuses written so far.
        subscribers: called with each PodMove whose phase has changed.
    """

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        client: ApiClient,
        clock: Callable[[], float],
        state: State,
        seats: ObjectCache,
        is_up_to_date: Callable[[], Awaitable[bool]],
        *,
        unsuited: Callable[[Ref, bool], None],
        may_surge: bool,
    ) -> None:
        """Begin without moves.

        Args:
            clock: unix seconds.
            is_up_to_date: waits until the watches have caught up; returns whether decisions are
                allowed.
            unsuited: called with each seat to place anew, and whether the move's target is ignored.
            may_surge: whether moves may start copies of pods.
        """
        self._client = client
        self._clock = clock
        self._is_up_to_date = is_up_to_date
        self.queue = WorkQueue[PodName]("moves")
        self.moves = MoveIndex(self._on_move_changed)
        self._workloads = Workloads(client, state.pods)
        self._observer = Observer(state, seats, self.moves, self._workloads)
        self._unsuited = unsuited
        self._executor = Executor(client, seats, unsuited)
        asked = (self.moves, state, self._workloads, self.queue.add)
        self.arbitration = ArbitrationLoop(clock, *asked)
        self.groups = DeclaredGroups(client, clock, self.moves, self.arbitration.changed)
        self.arbitration.declared = self.groups.members
        workload_of, may_begin = self._observer.workload, self.arbitration.may_begin
        self._surges = Surges(client, clock, workload_of, may_begin, is_on=may_surge)
        self.remains = SurgeRemains(client, self.moves)
        self._results: dict[PodName, EffectResult] = {}
        self.subscribers: list[Callable[[KnownMove], None]] = []
        self.writes = 0
        self._fault = ""

    def _on_move_changed(self, name: PodName) -> None:
        for each in (name, *self.moves.followers(name)):
            self.queue.add(each)
        self.arbitration.changed()
        self.remains.touched(name)
        known = self.moves.get(name)
        if known is not None and known.move is not None:
            self.groups.on_move_changed(known.move)

    def on_pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        """Queue the moves that a pod's change concerns; returns at once."""
        self._workloads.changed(before, after)
        if self._surges.is_on:
            self.remains.changed(before, after)
        for pod in (before, after):
            if pod is None:
                continue
            for name in self.moves.of_pod(pod.name):
                self.queue.add(name)
                if before and after and before.move_window != after.move_window:
                    self.arbitration.changed()
            owner = workload(pod)
            for name in self.moves.of_workload(owner) if owner else ():
                self.queue.add(name)

    def on_node_changed(self, node: str) -> None:
        """Queue the moves that land on a changed node; returns at once.

        If the node has closed, an evicted pod needs another seat before others take the room: the
        placer is notified at once, without a write of the status.
        """
        for name in self.moves.landing_on(node):
            known = self.moves.get(name)
            if known is None or known.move is None:
                continue
            self.queue.add(name)
            if known.move.status.seat and self._observer.is_closed(known.move):
                seat = Ref.of_object(name.namespace, known.move.status.seat)
                self._unsuited(seat, True)  # noqa: FBT003 - as `Core` has it

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue the move whose seat has changed; returns at once."""
        if ref.kind is StoreKind.OBJECT:
            name = self.moves.of_seat(PodName(ref.namespace, ref.key))
            if name is not None:
                self.queue.add(name)

    async def run(self) -> None:
        """Carry out moves until cancelled; call after the first lists."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.arbitration.run())
            tasks.create_task(self.groups.run())
            tasks.create_task(self.queue.run(self._work, _AT_ONCE))
            if self._surges.is_on:
                tasks.create_task(self.remains.queue.run(self.remains.work))

    async def _work(self, names: list[PodName]) -> None:
        for name in names:
            await self.step(name)

    async def step(self, name: PodName) -> None:
        """Make the next step of a PodMove; a failed step is retried later."""
        known = self.moves.get(name)
        if known is None:
            self._results.pop(name, None)
            return self.queue.discard(name)
        with quarantined("move", str(name), partial(self._on_fault, name)):
            try:
                await self._go_on(known)
            except ApiError as exc:
                self._later(name, exc)

    async def _go_on(self, known: KnownMove) -> None:
        move, name = known.move, known.name
        if move is None:
            await self._refuse(known)
            return
        wanted, surge = await self._wanted(move), await self._surges.read(move)
        # As in Bind: a watch that broke may be about to show that the seat is gone.
        if not await self._is_up_to_date():
            self.queue.add(name, LOOK_AGAIN_S)
            return
        if self.moves.get(name) is not known:
            return  # The move was written meanwhile, and is queued again.
        ruling = self.arbitration.of(name)
        now = self._clock()
        if not move.is_over and (ruling is None or ruling.turn.closes_at <= now):
            return  # No ruling on this version yet, or its window has closed; a ruling comes soon.
        result = self._results.get(name, EffectResult())
        seen = self._observer.observe(move, ruling or Ruling(), result, wanted, now, surge)
        step = advance(move, seen, now)
        if came := step.move.status.replacement.uid:  # So no other move counts the same pod.
            self.moves.take(came, name)
        is_written = show_status(step.move.status, known.metadata.generation) == known.said
        if not (is_written or move.is_over):  # An end stays as its version wrote it.
            await self._write(known, step.move)
            return
        self.moves.judged(known, step.move.status)
        self._results.pop(name, None)
        for effect in step.effects:
            result = await self._executor.execute(step.move, effect)
            if result.answer is not None:
                self._results[name] = result
                self.queue.add(name)
        self.queue.succeeded(name)
        await self._rest(known, step)

    async def _wanted(self, move: Move) -> WantedPods | None:
        """Return the controller's desired pods, if the landing depends on them; else None."""
        owner = self._observer.workload(move)
        if owner is None or not self._observer.is_awaited(move):
            return None
        return await self._workloads.wants(owner)

    async def _write(self, known: KnownMove, move: Move) -> None:
        """Write the status of a move; only the next step executes its effects."""
        before = known.move.status if known.move else None
        status = show_status(move.status, known.metadata.generation)
        known.writing = (status, move.status)
        try:
            answer = await self._patch(known, status)
        finally:
            known.writing = None
        self._results.pop(move.name, None)
        if self.moves.get(move.name) is known:  # Else the watch was faster.
            known.writing = (status, move.status)
            self.moves.put(decode(MoveObject, answer))
        written = self.moves.get(move.name)
        if written is not None and is_news(before, move.status):
            log.info("move", name=str(move.name), phase=status.phase, reason=status.reason)
            self.arbitration.changed()
            self._report(written)

    async def _patch(self, known: KnownMove, status: StatusObject) -> bytes:
        body = {"metadata": {"resourceVersion": known.metadata.resource_version}, "status": status}
        answer = await self._client.patch(status_path(known.name), body)
        self.writes += 1
        self._fault = ""
        return answer

    async def _refuse(self, known: KnownMove) -> None:
        """Write the problem of an invalid PodMove into its status, or report it if it has begun."""
        assert known.problem is not None  # noqa: S101 - else there is a move
        if known.has_begun:  # Its seat stays, too: perhaps another version carries it out.
            if known.told != (why := str(known.problem)):
                known.told = why
                log.warning("move is left as it is", name=str(known.name), why=why)
                self._report(known)
            return
        status = refused(known.problem, known.metadata.generation)
        if known.said != status:
            answer = await self._patch(known, status)
            if self.moves.get(known.name) is known:  # Else the watch was faster.
                self.moves.put(decode(MoveObject, answer))
            self._report(self.moves.get(known.name) or known)

    async def _rest(self, known: KnownMove, step: MoveStep) -> None:
        """Queue the next step of a move; delete an ended one after its time to live."""
        now = self._clock()
        if step.again_at is not None:
            after_s = max(0.0, step.again_at - now)
            if step.move.status.phase is not MovePhase.PENDING:
                after_s = min(after_s, LOOK_AGAIN_S)
            self.queue.add(known.name, max(after_s, 0.01))
        elif step.move.spec.keep_s is not None and step.move.status.finished_at is not None:
            left_s = step.move.status.finished_at + step.move.spec.keep_s - now
            if self.moves.followers(known.name):  # They first need to read its replacement.
                left_s = max(left_s, LOOK_AGAIN_S)
            if left_s > 0:
                self.queue.add(known.name, left_s)
            else:
                options = {"preconditions": {"uid": known.metadata.uid}}
                await self._client.delete(path(known.name), options)

    def _report(self, known: KnownMove) -> None:
        for notify in self.subscribers:
            notify(known)

    def _later(self, name: PodName, error: ApiError) -> None:
        if error.is_absent:
            self.queue.discard(name)  # The watch will show the deletion.
            return
        fault = advice(error)
        self.queue.failed(name, error, None if error.is_conflict else fault)
        if fault != self._fault and not error.is_conflict:
            log.warning("move cannot go on, retrying", name=str(name), why=fault)
            self._fault = fault

    def _on_fault(self, name: PodName, fault: Fault) -> None:
        """Retry a move whose step raised a fault, with back-off."""
        log.error("move cannot be judged", name=str(name), why=str(fault))
        self.queue.failed(name, what=str(fault))
