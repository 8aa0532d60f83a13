"""Decides the reservations and pods for which autoscalers make room by CapacityBuffers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

from reserver.autoscaling.buffer_writer import BufferWriter
from reserver.autoscaling.codec import name_for
from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata, ObjectKind
from reserver.k8s.watch.back_in_time import watched
from reserver.k8s.work_queue import Time, WorkQueue
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.reservation import Ref
from reserver.scheduling.buffers import (
    MOST_BUFFERS,
    Buffer,
    BufferedPods,
    KeptOutNodes,
    Need,
    Simulation,
    buffer,
    came_before,
    lands,
    need,
)
from reserver.scheduling.state import State
from reserver.stores.cache import Name

AFTER_S = 1.0
"""Seconds that a reservation or a pod waits before Reserver writes a CapacityBuffer.

Within that time pods that need no new node are placed, because a hold ends or because
kube-scheduler's sample was small; and Karpenter batches pods for as long before it adds nodes.
"""

_AGAIN = ""


class Buffers(Listener):
    """Decides the desired CapacityBuffers, and the nodes that stay for pods that had a buffer.

    Attributes:
        queue: reservations and UIDs of pods to look at; an empty UID has all that wait looked
            at again.
        writer: writes the buffers.
        buffered_pods: bound pods that had a buffer, whose nodes stay.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        subject: Callable[[Ref], tuple[Metadata, ObjectKind] | None],
        time: Time | None = None,
        *,
        listener: Listener = NOBODY,
    ) -> None:
        """Begin without buffers.

        Args:
            clock: unix seconds.
            subject: returns metadata and kind of the object in which a reservation is written.
            time: the queues' clock, in seconds; None uses the event loop's clock.
            listener: notified of each node that need not stay any more.
        """
        self._clock = clock
        self._listener = listener
        self.queue = WorkQueue[Ref | str]("buffers", time=time)
        again = partial(self.queue.add, _AGAIN, AFTER_S)
        self.writer = BufferWriter(client, subject, again, time)
        self._waiting: dict[Ref, Name] = {}
        self._refused: dict[str, Name] = {}
        self.buffered_pods = BufferedPods()

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue a reservation that may have begun or ceased to wait for room; returns at once."""
        self.queue.add(ref, AFTER_S)

    def on_pod_refused(self, pod_uid: str) -> None:
        """Queue a pod that begins to wait because of holds; returns at once."""
        self.queue.add(pod_uid, AFTER_S)

    def on_pod_assumed(self, pod: Pod, node: str) -> None:
        """End the buffer of a pod that is being bound; returns at once.

        An autoscaler that sees the pod on its node while its buffer still exists adds another node.
        """
        name = self._refused.pop(pod.uid, None)
        if name is not None and self.writer.wanted(name) is not None:
            self.writer.end(name)
            self.buffered_pods.add(pod, node)

    def on_node_changed(self, node: str) -> None:  # noqa: ARG002 - any node may have room
        """Queue another look at all that wait, as a node has changed; returns at once."""
        if self._waiting or self._refused or self.buffered_pods:
            self.queue.add(_AGAIN, AFTER_S)

    async def run(self, state: State) -> None:
        """Decide on buffers and write them until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watched(self.writer.reflector))
            await self.writer.reflector.synced.wait()
            await self.begin(state, Pacer())
            tasks.create_task(self.writer.run())
            tasks.create_task(self.queue.passes(partial(self.look, state), AFTER_S))

    async def begin(self, state: State, pacer: Pacer) -> None:
        """Queue all reservations and waiting pods: only they justify a former leader's buffers."""
        for ref in state.ledger.refs():
            self.queue.add(ref)
            await pacer.give_way()
        for uid in tuple(state.waiting):
            self.queue.add(uid)
        for pod in tuple(state.pods.values()):
            if came_before(pod, state):
                self.buffered_pods.add(pod, pod.node)
            await pacer.give_way()
        self.queue.add(_AGAIN)

    async def look(self, state: State, pacer: Pacer) -> None:
        """Decide the desired buffers."""
        await pacer.run(state.ledger.advancing(self._clock()))
        for key in self.queue.take_all():
            with quarantined("buffer", key):
                self._take(key, state)
            await pacer.give_way()
        kept_out, numbers = KeptOutNodes(), Counter[str]()
        for ref in tuple(self._waiting):
            with quarantined("buffer", ref):
                self._decide(ref, state, kept_out, numbers)
            if await pacer.give_way():
                kept_out = KeptOutNodes()
        await self._look_at_pods(state, Simulation(state, numbers), pacer)
        self.writer.keep_only({*self._waiting.values(), *self._refused.values()})
        for uid in self.buffered_pods.uids():
            with quarantined("buffer", uid):
                if node := self.buffered_pods.let_go(uid, state):
                    self._listener.on_node_changed(node)
            await pacer.give_way()

    def _take(self, key: Ref | str, state: State) -> None:
        """Record a reservation, or a pod by its UID, that waits for room."""
        if isinstance(key, str):
            if waiting := state.waiting.get(key):
                self._refused[key] = (waiting.pod.name.namespace, name_for(key))
        elif key not in self._waiting and need(key, state) is not Need.NOTHING:
            self._waiting[key] = (key.namespace, name_for(key))

    def _decide(
        self, ref: Ref, state: State, kept_out: KeptOutNodes, numbers: Counter[str]
    ) -> None:
        """Set the desired buffer of a waiting reservation."""
        name, needed = self._waiting[ref], need(ref, state)
        if needed is Need.PATIENCE and name in self.writer:
            return  # Else an autoscaler might remove the node before its guard is written.
        wanted = buffer(ref, state, kept_out) if numbers[ref.namespace] < MOST_BUFFERS else None
        numbers[ref.namespace] += wanted is not None
        if needed is not Need.ROOM:
            del self._waiting[ref]
        self.writer.want(name, wanted)

    async def _look_at_pods(self, state: State, simulation: Simulation, pacer: Pacer) -> None:
        """Decide the pods' buffers, after those of all reservations."""
        for uid in tuple(self._refused):
            with quarantined("buffer", uid):
                simulation.consider(uid)
            await pacer.give_way()
        wanted: dict[str, Buffer | None] = {}
        for waiting in simulation.in_order():
            uid = waiting.pod.uid
            with quarantined("buffer", uid):
                wanted[uid] = simulation.buffer(waiting)
            await pacer.give_way()
        for uid in tuple(self._refused):
            self._decide_pod(uid, wanted.get(uid), state)
            await pacer.give_way()

    def _decide_pod(self, uid: str, wanted: Buffer | None, state: State) -> None:
        """Set the desired buffer of a waiting pod."""
        name = self._refused.get(uid)
        if name is None:
            return  # The pod has been bound meanwhile.
        before = self.writer.wanted(name)
        if wanted is None and before is not None and lands(before.pod, state):
            wanted = before
        elif wanted is None and uid not in state.waiting:
            del self._refused[uid]
        self.writer.want(name, wanted)
