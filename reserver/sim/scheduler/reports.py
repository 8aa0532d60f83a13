"""What the scheduler tells of its attempts: events, and the condition PodScheduled."""

from __future__ import annotations

import secrets
import socket
from collections import OrderedDict
from http import HTTPStatus

import structlog

from reserver.errors import ApiError
from reserver.sim.apiserver.status import Json
from reserver.sim.client import JSON, STRATEGIC_PATCH, ApiClient
from reserver.sim.clock import Clock, rfc3339
from reserver.sim.scheduler.objects import PodView

_REMEMBERED = 4096
"""Events whose repetition is counted in the event itself."""

log = structlog.get_logger()


class Reporter:
    """Writes events and conditions; a write that fails is only logged, as in kube-scheduler.

    Args:
        client: where they are written.
        clock: their times.
        name: the scheduler's name.
    """

    def __init__(self, client: ApiClient, clock: Clock, name: str) -> None:
        self._client = client
        self._clock = clock
        self._name = name
        self._told: OrderedDict[tuple[str, str, str], tuple[str, int]] = OrderedDict()

    async def scheduled(self, view: PodView, node: str) -> None:
        """Tell by an event that a pod got its node."""
        name = view.pod.name
        note = f"Successfully assigned {name.namespace}/{name.name} to {node}"
        await self._event(view, "Normal", "Scheduled", "Binding", note)

    async def failed(self, view: PodView, message: str) -> None:
        """Tell by an event that an attempt failed."""
        await self._event(view, "Warning", "FailedScheduling", "Scheduling", message)

    async def mark(self, view: PodView, reason: str, message: str) -> None:
        """Note in a pod's status that an attempt failed, unless it says so already."""
        if patch := failure_patch(view, reason, message, rfc3339(self._clock.now())):
            await self._write("PATCH", f"{view.path}/status", patch, STRATEGIC_PATCH)

    async def _event(self, view: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Create an event, or count up the one that says the same of the same pod."""
        key = (view.pod.uid, reason, note)
        namespace = view.pod.name.namespace
        path = f"/api/v1/namespaces/{namespace}/events"
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        name, count = self._told.pop(key, (f"{view.pod.name.name}.{secrets.token_hex(8)}", 0))
        # Before anything is awaited: the next one may say the same.
        self._told[key] = (name, count + 1)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        if count:
            series = {"series": {"count": count + 1, "lastObservedTime": now}}
            await self._write("PATCH", f"{path}/{name}", series, STRATEGIC_PATCH)
            return
        event = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": _reference(view),
            "type": kind,
            "reason": reason,
            "action": action,
            "message": note,
            "eventTime": now,
            "reportingComponent": self._name,
            "reportingInstance": f"{self._name}-{socket.gethostname()}",
        }
        await self._write("POST", path, event)

    async def _write(self, method: str, path: str, body: Json, media: str = JSON) -> None:
        try:
            await self._client.send(method, path, body, media=media)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                log.warning("report_failed", path=path, error=str(error))


def _reference(view: PodView) -> Json:
    name = view.pod.name
    return {
        "kind": "Pod",
        "namespace": name.namespace,
        "name": name.name,
        "uid": view.pod.uid,
        "apiVersion": "v1",
        "resourceVersion": view.content["metadata"].get("resourceVersion", ""),
    }


def failure_patch(view: PodView, reason: str, message: str, now: str) -> Json | None:
    """Return the status patch for a failed attempt; None if the status says it already.

    A nomination is cleared, as preemption without candidates does (`handleSchedulingFailure`).
    """
    condition: Json = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
    }
    old = view.condition("PodScheduled") or {}
    status: Json = {}
    if any(old.get(key) != value for key, value in condition.items()):
        since = old.get("lastTransitionTime") if old.get("status") == "False" else None
        times = {"lastProbeTime": None, "lastTransitionTime": since or now}
        generation = view.content["metadata"].get("generation", 0)
        status["conditions"] = [{**condition, **times, "observedGeneration": generation}]
    if view.pod.nominated_node:
        status["nominatedNodeName"] = None
    if not status:
        return None
    return {"metadata": {"uid": view.pod.uid}, "status": status}
