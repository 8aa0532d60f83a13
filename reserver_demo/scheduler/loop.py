"""The scheduler: chooses a node for one pod at a time; bindings run concurrently."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable

import aiohttp
import structlog

from reserver.cluster.node import Node
from reserver.errors import ApiError
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode
from reserver_demo.apiserver.status import Json
from reserver_demo.client import JSON, STRATEGIC_PATCH, ApiClient
from reserver_demo.clock import Clock, rfc3339
from reserver_demo.informer import Informer
from reserver_demo.scheduler.extender import AttemptFailedError, Extender
from reserver_demo.scheduler.view import ClusterView, PodView, fit_message, parse_pod

NAME = "default-scheduler"

RETRY_S = 1.0
"""Seconds until a failed attempt or binding is repeated."""

log = structlog.get_logger()


class _NotSchedulableError(Exception):
    """No node can take the pod; the message is kube-scheduler's."""


class Scheduler:
    """Schedules the pods of one API server.

    Args:
        client: the API server.
        session: for calls of the extender.
        clock: times the retries.
        extender_url: the extender's `urlPrefix`.
    """

    def __init__(
        self, client: ApiClient, session: aiohttp.ClientSession, clock: Clock, extender_url: str
    ) -> None:
        self._client = client
        self._clock = clock
        self._extender = Extender(session, extender_url)
        self._cluster = ClusterView()
        self._pending: dict[str, PodView] = {}
        """The pods without a node by UID, in the order of their arrival."""
        self._due: set[str] = set()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Schedule until cancelled."""
        pods = Informer(self._client, "/api/v1/pods", parse_pod, self._on_pod, self._clock)
        nodes = Informer(self._client, "/api/v1/nodes", _parse_node, self._on_node, self._clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pods.run())
            tasks.create_task(nodes.run())
            await pods.synced.wait()
            await nodes.synced.wait()
            while True:
                await self._woken.wait()
                if view := self._next():
                    await self._attempt(view, tasks)

    def _next(self) -> PodView | None:
        """Remove and return the next pod: by priority, then by arrival; None without one."""
        due = [view for uid, view in self._pending.items() if uid in self._due]
        if not due:
            self._woken.clear()
            return None
        view = max(due, key=lambda view: view.pod.priority)
        self._due.remove(view.pod.uid)
        return view

    async def _attempt(self, view: PodView, tasks: asyncio.TaskGroup) -> None:
        uid = view.pod.uid
        try:
            node = await self._pick(view)
        except _NotSchedulableError as refusal:
            await self._refuse(view, "Unschedulable", str(refusal))
        except AttemptFailedError as error:
            tasks.create_task(self._failed(view, str(error)))
        else:
            if uid in self._pending:
                self._cluster.pods[uid] = (node, view.pod)
                self._due.discard(uid)
                tasks.create_task(self._bind(view, node))

    async def _pick(self, view: PodView) -> str:
        nodes = self._cluster.nodes
        if not nodes:
            raise _NotSchedulableError("no nodes available to schedule pods")
        reasons = {name: self._cluster.why_not(view, node) for name, node in nodes.items()}
        passed = [name for name, why in reasons.items() if not why]
        if passed:
            answer = await self._extender.filter(view, passed)
            refused = answer.failed_nodes or {}
            refused |= answer.failed_and_unresolvable_nodes or {}
            reasons.update({name: (why,) for name, why in refused.items()})
            passed = [name for name in answer.node_names or () if name in nodes]
        if not passed:
            raise _NotSchedulableError(fit_message(len(nodes), reasons))
        return self._cluster.emptiest(passed)

    async def _bind(self, view: PodView, node: str) -> None:
        try:
            await self._extender.bind(view, node)
        except AttemptFailedError as error:
            uid = view.pod.uid
            if uid in self._pending:
                self._cluster.pods.pop(uid, None)
            self._wake(self._pending.keys() - {uid})
            await self._failed(view, str(error))
        else:
            namespace, name = view.pod.name
            note = f"Successfully assigned {namespace}/{name} to {node}"
            await self._event(view, "Normal", "Scheduled", note)

    async def _failed(self, view: PodView, message: str) -> None:
        await self._refuse(view, "SchedulerError", message)
        await self._clock.sleep(RETRY_S)
        self._wake({view.pod.uid})

    def _wake(self, uids: Iterable[str]) -> None:
        """Queue pending pods for another attempt, except pods that are being bound."""
        self._due.update(self._pending.keys() & set(uids) - self._cluster.pods.keys())
        self._woken.set()

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if after is not None:
            self._cluster.nodes[after.name] = after
        elif before is not None:
            del self._cluster.nodes[before.name]
        if before != after:
            self._wake(self._pending)

    def _on_pod(self, before: PodView | None, after: PodView | None) -> None:
        if before and (after is None or before.pod.uid != after.pod.uid):
            self._pending.pop(before.pod.uid, None)
            self._cluster.pods.pop(before.pod.uid, None)
            self._wake(self._pending)
        if after:
            self._keep(after)
            if before is None or before.what_counts != after.what_counts:
                nominated = before.pod.nominated_node if before else ""
                is_own = after.pod.uid in self._pending and nominated == after.pod.nominated_node
                self._wake({after.pod.uid} if is_own else self._pending)

    def _keep(self, view: PodView) -> None:
        pod = view.pod
        if view.waits_for(NAME):
            self._pending[pod.uid] = view
            return
        self._pending.pop(pod.uid, None)
        if pod.node and not pod.finished:
            self._cluster.pods[pod.uid] = (pod.node, pod)
        else:
            self._cluster.pods.pop(pod.uid, None)

    async def _refuse(self, view: PodView, reason: str, message: str) -> None:
        """Report in status and event why a pod has no node, unless the status has the reason.

        Clears a nomination, as preemption without candidates does (`handleSchedulingFailure`).
        """
        latest = self._pending.get(view.pod.uid)
        if latest is None:
            return
        refusal = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        is_new = not refusal.items() <= latest.condition("PodScheduled").items()
        status: Json = {}
        if is_new:
            status["conditions"] = [{**refusal, "lastTransitionTime": rfc3339(self._clock.now())}]
        if latest.pod.nominated_node:
            status["nominatedNodeName"] = None
        if status:
            patch = {"metadata": {"uid": view.pod.uid}, "status": status}
            await self._write("PATCH", f"{view.path}/status", patch, STRATEGIC_PATCH)
        if is_new:
            await self._event(view, "Warning", "FailedScheduling", message)

    async def _event(self, view: PodView, kind: str, reason: str, note: str) -> None:
        namespace, name = view.pod.name
        reference = {"kind": "Pod", "namespace": namespace, "name": name, "uid": view.pod.uid}
        event = {
            "metadata": {"name": f"{name}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": reference,
            "type": kind,
            "reason": reason,
            "message": note,
            "source": {"component": NAME},
        }
        await self._write("POST", f"/api/v1/namespaces/{namespace}/events", event)

    async def _write(self, method: str, path: str, body: Json, media: str = JSON) -> None:
        """Write a status or an event; a failure is only logged, as in kube-scheduler."""
        try:
            await self._client.send(method, path, body, media=media)
        except ApiError as error:
            log.warning("report_failed", path=path, error=str(error))


def _parse_node(raw: bytes) -> Node:
    return decode(NodeObject, raw).value()
