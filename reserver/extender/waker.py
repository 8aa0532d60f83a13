"""The waker: sends waiting pods back to kube-scheduler when less is held than before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.extender.requeue import Requeue
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect
from reserver.scheduling.wake import Wake

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 0.2
"""Longest delay of the wake-up after an expiry, in seconds."""

_LOOK = ""
"""The key of a pass for changes other than freed capacity."""


class Waker(Listener):
    """Sends waiting pods back to kube-scheduler when less is held than before.

    Attributes:
        queue: the nodes on which less is held than before.
        woken: pods sent back so far.
    """

    def __init__(self, requeue: Requeue, clock: Callable[[], float]) -> None:
        """Send pods back through a requeue; `clock` gives unix seconds."""
        self._requeue = requeue
        self._clock = clock
        self.queue = WorkQueue[str]("waker")
        self.woken = 0
        self._changed: dict[str, None] = {}
        self._seats_are_over = False

    def on_capacity_freed(self, node: str) -> None:
        """Queue a node on which less is held than before; returns at once."""
        self.queue.add(node)

    def on_node_changed(self, node: str) -> None:
        """Record a changed node: a pod may have been tried before Reserver saw the change."""
        self._changed[node] = None

    def on_reservation_changed(self, ref: Ref) -> None:  # noqa: ARG002 - any seat may have ended
        """Record that seats may have ended; returns at once."""
        self._seats_are_over = True

    async def run(self, state: State) -> None:
        """Wake pods until cancelled, first the pods that waited before this process began.

        Their room may have been freed while no process was looking.
        """
        if state.waiting:
            for node in state.snapshot.node_names():
                self.on_capacity_freed(node)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._expire(state))
            await self.queue.passes(partial(self.look, state))

    async def look(self, state: State, pacer: Pacer) -> None:
        """Make one pass: wake the pods that fit into the freed room."""
        await pacer.run(state.ledger.advancing(self._clock()))
        wake = self._wake(state)
        for uid in await pacer.run(wake.order()):
            # A pod that is being sent back will be judged with all room that is free by then.
            if not self._requeue.is_under_way(uid):
                with quarantined("waker", uid):
                    self._send_back(wake.judge(uid))
            if await pacer.give_way():
                state.ledger.advance(self._clock())

    def _wake(self, state: State) -> Wake:
        """Return the pass for all changes so far, and reset them."""
        waiting, guarded = state.waiting, state.snapshot.holding
        lately = [uid for uid in self._requeue.judged_lately() if uid in waiting]
        changed = [node for node in self._changed if node in guarded] if lately else ()
        seats_are_over, self._seats_are_over = self._seats_are_over, False
        self._changed.clear()
        return Wake(
            self.queue.take_all(),
            state,
            self._clock(),
            changed=changed,
            lately=lately if changed else (),
            seats_are_over=seats_are_over,
        )

    def _send_back(self, effect: Effect | None) -> None:
        if effect is not None:
            log.debug("waking", pod=str(effect.pod.name), effect=type(effect).__name__)
            self._requeue.send(effect)
            self.woken += 1

    async def _expire(self, state: State) -> None:
        """Advance the ledger, which reports freed capacity."""
        while True:
            await Pacer().run(state.ledger.advancing(self._clock()))
            state.snapshot.lending.reopen(self._clock())  # Wakes pods that wait to borrow.
            if not state.waiting:
                self._changed.clear()  # Later calls see these changes.
            elif self._changed or self._seats_are_over:
                self.queue.add(_LOOK)
            await asyncio.sleep(LOOK_EVERY_S)
