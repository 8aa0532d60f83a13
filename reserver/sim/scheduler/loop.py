"""The scheduler: one pod after the other gets a node; bindings run beside it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp

from reserver.errors import ApiError
from reserver.sim.client import ApiClient
from reserver.sim.clock import Clock, wait_for
from reserver.sim.informer import Informer
from reserver.sim.scheduler.extender import Extender
from reserver.sim.scheduler.objects import NodeView, PodView, parse_node, parse_pod
from reserver.sim.scheduler.queue import Happening, SchedulingQueue, Waiting
from reserver.sim.scheduler.reports import Reporter
from reserver.sim.scheduler.search import NodeSearch
from reserver.sim.scheduler.verdict import AttemptFailedError, NotSchedulableError
from reserver.sim.scheduler.view import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """How the scheduler works.

    Attributes:
        name: it takes the pods that ask for it by this name.
        extender_url: the extender's `urlPrefix`; None for none.
        extender_timeout: seconds for one call of the extender.
        sample: feasible nodes that are looked for, and so sent, at most
            (`numFeasibleNodesToFind`).
        initial_backoff: seconds until a pod that failed once is due again.
        max_backoff: seconds until a pod that failed often is due again.
    """

    name: str = "default-scheduler"
    extender_url: str | None = None
    extender_timeout: float = 5.0
    sample: int = 100
    initial_backoff: float = 1.0
    max_backoff: float = 10.0


class Scheduler:
    """Schedules the pods of one API server.

    Args:
        client: the API server.
        session: for calls of the extender.
        clock: times the back-off.
        options: how it works.
    """

    def __init__(
        self,
        client: ApiClient,
        session: aiohttp.ClientSession,
        clock: Clock,
        options: SchedulerOptions,
    ) -> None:
        self._client = client
        self._clock = clock
        self._name = options.name
        self._cluster = ClusterView()
        self._queue = SchedulingQueue(options.initial_backoff, options.max_backoff)
        self._pending: dict[str, PodView] = {}
        url = options.extender_url
        self._extender = Extender(session, url, options.extender_timeout) if url else None
        self._search = NodeSearch(self._cluster, self._extender, options.sample)
        self._reporter = Reporter(client, clock, options.name)

    async def run(self) -> None:
        """Schedule until cancelled."""
        pods = Informer(self._client, "/api/v1/pods", parse_pod, self._on_pod, self._clock)
        nodes = Informer(self._client, "/api/v1/nodes", parse_node, self._on_node, self._clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pods.run())
            tasks.create_task(nodes.run())
            await pods.synced.wait()
            await nodes.synced.wait()
            while True:
                await self._attempt(await self._next(), tasks)

    async def _next(self) -> Waiting:
        while True:
            now = self._clock.monotonic()
            if waiting := self._queue.pop(now):
                return waiting
            self._queue.changed.clear()
            await wait_for(self._queue.changed, self._clock, self._queue.next_due() - now)

    async def _attempt(self, waiting: Waiting, tasks: asyncio.TaskGroup) -> None:
        uid = waiting.view.pod.uid
        try:
            node = await self._search.pick(waiting.view, self._queue.nominated())
        except NotSchedulableError as refusal:
            now = self._clock.monotonic()
            self._queue.refused(waiting, now, by_extender=refusal.by_extender)
            await self._tell(waiting, "Unschedulable", str(refusal), tasks)
        except AttemptFailedError as error:
            if uid in self._pending:
                self._queue.failed(waiting, self._clock.monotonic())
            await self._tell(waiting, error.reason, str(error), tasks)
        else:
            if uid in self._pending:
                self._cluster.assume(waiting.view.pod, node)
                self._queue.remove(uid)
                tasks.create_task(self._bind(waiting, node, tasks))

    async def _bind(self, waiting: Waiting, node: str, tasks: asyncio.TaskGroup) -> None:
        view = waiting.view
        try:
            if self._extender is not None:
                await self._extender.bind(view, node)
            else:
                await self._client.send("POST", f"{view.path}/binding", _binding(view, node))
        except (AttemptFailedError, ApiError) as error:
            await self._unbind(waiting, str(error), tasks)
        else:
            await self._reporter.scheduled(view, node)

    async def _unbind(self, waiting: Waiting, problem: str, tasks: asyncio.TaskGroup) -> None:
        """Take back a decision whose binding failed, unless the pod is seen bound after all."""
        now = self._clock.monotonic()
        uid = waiting.view.pod.uid
        self._cluster.forget(uid)
        self._queue.move(Happening.POD_GONE, now)
        if uid in self._pending:
            waiting.view = self._pending[uid]
            self._queue.failed(waiting, now)
        await self._tell(waiting, "SchedulerError", problem, tasks)

    async def _tell(
        self, waiting: Waiting, reason: str, message: str, tasks: asyncio.TaskGroup
    ) -> None:
        if waiting.view.pod.uid in self._pending:
            await self._reporter.mark(waiting.view, reason, message)
        tasks.create_task(self._reporter.failed(waiting.view, message))

    def _on_node(self, before: NodeView | None, after: NodeView | None) -> None:
        if after is not None:
            self._cluster.set_node(after)
            if before is None or before.scheduling != after.scheduling:
                self._queue.move(Happening.NODE_CHANGED, self._clock.monotonic())
        elif before is not None:
            self._cluster.remove_node(before.node.name)

    def _on_pod(self, before: PodView | None, after: PodView | None) -> None:
        if before and after and before.pod.uid != after.pod.uid:
            self._gone(before)
            before = None
        if after is None:
            if before is not None:
                self._gone(before)
        elif after.pod.node:
            self._assigned(before, after)
        elif after.scheduler == self._name and not after.is_going and not after.is_gated:
            self._pending[after.pod.uid] = after
            # A pod that was given a node is not scheduled again because of a change.
            if not self._cluster.knows(after.pod.uid):
                self._queue.update(after, self._clock.monotonic())
                if before and before.pod.nominated_node != after.pod.nominated_node:
                    self._nomination_ended(before)
        else:
            self._no_more_pending(after.pod.uid)

    def _assigned(self, before: PodView | None, after: PodView) -> None:
        self._no_more_pending(after.pod.uid)
        self._cluster.set_pod(after.pod)
        ended = after.pod.finished and before is not None and not before.pod.finished
        if ended or not after.pod.finished:
            happening = Happening.POD_GONE if ended else Happening.POD_ASSIGNED
            self._queue.move(happening, self._clock.monotonic())

    def _gone(self, view: PodView) -> None:
        self._no_more_pending(view.pod.uid)
        self._cluster.remove_pod(view.pod.uid)
        if view.pod.node and not view.pod.finished:
            self._queue.move(Happening.POD_GONE, self._clock.monotonic())
        else:
            self._nomination_ended(view)

    def _nomination_ended(self, view: PodView) -> None:
        """Wake the pods that a nomination kept out (`hasNominatedNodeNameChanged`)."""
        if view.pod.nominated_node:
            now = self._clock.monotonic()
            self._queue.move(Happening.POD_GONE, now, up_to=view.pod.priority)

    def _no_more_pending(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._queue.remove(uid)


def _binding(view: PodView, node: str) -> object:
    name = view.pod.name
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name.name, "namespace": name.namespace, "uid": view.pod.uid},
        "target": {"kind": "Node", "name": node},
    }
