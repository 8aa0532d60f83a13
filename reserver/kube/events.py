"""Warning events on store ConfigMaps and on pods: where the person who wrote them will look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from cachetools import LRUCache, TTLCache

from reserver.errors import ApiError
from reserver.kube.client import ApiClient
from reserver.scheduling.telling import Telling
from reserver.wire.objects import Metadata
from reserver.wire.store import Problem
from reserver.wire.times import show_moment

log = structlog.get_logger(__name__)

_MAX_MESSAGE = 1024
_BURST = 25
"""Events with one reason for one ConfigMap in ten minutes; more would drown all others (client-go
allows 25)."""

_BURST_WINDOW_S = 600.0

_POD_EVENTS = 100
"""Events on pods in ten seconds, all pods together: a full cluster refuses thousands at once."""

_POD_WINDOW_S = 10.0


@dataclass(frozen=True, slots=True)
class _Subject:
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


class Recorder:
    """Writes Warning events; of a problem with an entry, one, and of what keeps a pod, one.

    Attributes:
        reported: how many problems were reported, those beyond the burst included.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self._seen: LRUCache[tuple[str, str], bool] = LRUCache(maxsize=16_384)
        self._counts: TTLCache[tuple[str, str], int] = TTLCache(1024, _BURST_WINDOW_S, timer=clock)
        self._told: LRUCache[tuple[str, str, str], bool] = LRUCache(maxsize=16_384)
        self._window = 0.0
        self._told_in_window = 0
        self._queue: asyncio.Queue[tuple[_Subject, str, str]] = asyncio.Queue(maxsize=1000)
        self.reported = 0

    def report(self, configmap: Metadata, problem: Problem) -> None:
        """Log a problem with a ConfigMap, and have an event written; returns at once."""
        message = str(problem)
        if (configmap.uid, message) in self._seen:
            return
        self._seen[configmap.uid, message] = True
        self.reported += 1
        name = f"{configmap.namespace}/{configmap.name}"
        log.warning(
            "reservation not enforced",
            configmap=name,
            key=problem.ref.key,
            field=problem.error.path,
            problem=problem.error.problem,
            remedy=problem.error.remedy,
        )
        self.warn(configmap, "InvalidReservation", message)

    def warn(self, configmap: Metadata, reason: str, message: str) -> None:
        """Have an event written on a ConfigMap, unless there are too many; returns at once."""
        count = self._counts.get((configmap.uid, reason), 0) + 1
        self._counts[configmap.uid, reason] = count
        if count <= _BURST and not self._queue.full():
            more = " (more are in reserver's log)" if count == _BURST else ""
            own = (configmap.namespace, configmap.name, configmap.uid, configmap.resource_version)
            self._put(_Subject("ConfigMap", *own), reason, message, more)

    def tell(self, telling: Telling) -> None:
        """Have an event written on a pod, once for each cause; returns at once.

        While there are too many it is dropped, and told with a later attempt at the pod.
        """
        pod = telling.pod
        key = (pod.uid, telling.reason, telling.cause)
        if key in self._told or self._queue.full() or not self._has_turn():
            return
        self._told[key] = True
        self._put(_Subject("Pod", *pod.name, pod.uid), telling.reason, telling.message)

    def _has_turn(self) -> bool:
        """Count an event on a pod; return False when there were too many lately."""
        now = self._clock()
        if not 0 <= now - self._window < _POD_WINDOW_S:
            self._window, self._told_in_window = now, 0
        self._told_in_window += 1
        return self._told_in_window <= _POD_EVENTS

    def _put(self, subject: _Subject, reason: str, message: str, more: str = "") -> None:
        self._queue.put_nowait((subject, reason, message[: _MAX_MESSAGE - len(more)] + more))

    async def run(self) -> None:
        """Write events until cancelled; one that cannot be written is logged and dropped."""
        while True:
            subject, reason, message = await self._queue.get()
            path = f"/api/v1/namespaces/{subject.namespace}/events"
            try:
                await self._client.create(path, self._event(subject, reason, message))
            except ApiError as exc:
                log.warning("event could not be written", why=str(exc))

    def _event(self, subject: _Subject, reason: str, message: str) -> dict[str, object]:
        now = show_moment(self._clock())
        involved = {
            "apiVersion": "v1",
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        }
        if subject.resource_version:
            involved["resourceVersion"] = subject.resource_version
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{subject.name[:200]}.",
                "namespace": subject.namespace,
            },
            "involvedObject": involved,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "reserver"},
            "reportingComponent": "reserver",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
