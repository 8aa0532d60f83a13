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
"""How long it may take to wake pods after an expiry, in seconds."""

_LOOK = ""
"""No node: a pass for what has changed otherwise."""


class Waker(Listener):
    """Sends waiting pods back to kube-scheduler when less is held than before.

    Attributes:
        queue: of the nodes on which less is held than before.
        woken: how many pods were sent back.
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
        """Note that less is held on a node than before; returns at once."""
        self.queue.add(node)

    def on_node_changed(self, node: str) -> None:
        """Note that Reserver reads of a change; kube-scheduler may have tried a pod before."""
        self._changed[node] = None

    def on_reservation_changed(self, ref: Ref) -> None:  # noqa: ARG002 - any may be over
        """Note that pods may have to wait for their seats no more; returns at once."""
        self._seats_are_over = True

    async def run(self, state: State) -> None:
        """Wake pods until cancelled, first those that wait since before this process began.

        What they wait for may have come while nobody looked.
        """
        if state.waiting:
            for node in state.snapshot.node_names():
                self.on_capacity_freed(node)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._expire(state))
            await self.queue.passes(partial(self.look, state))

    async def look(self, state: State, pacer: Pacer) -> None:
        """Wake the pods that fit into what was freed; what is freed meanwhile comes next time."""
        await pacer.run(state.ledger.advancing(self._clock()))
        wake = self._wake(state)
        for uid in await pacer.run(wake.order()):
            # A pod on its way will be judged with all that is free by then.
            if not self._requeue.is_under_way(uid):
                with quarantined("waker", uid):
                    self._send_back(wake.judge(uid))
            if await pacer.give_way():
                state.ledger.advance(self._clock())

    def _wake(self, state: State) -> Wake:
        """Return what to hand out, and take it for done."""
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
        """Let the ledger end what expires, which reports what is freed."""
        while True:
            await Pacer().run(state.ledger.advancing(self._clock()))
            state.snapshot.lending.reopen(self._clock())  # Who waits to borrow is to hear of it.
            if not state.waiting:
                self._changed.clear()  # Who asks from now on is judged with what has changed.
            elif self._changed or self._seats_are_over:
                self.queue.add(_LOOK)
            await asyncio.sleep(LOOK_EVERY_S)
