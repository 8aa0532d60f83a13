"""Warning events on store ConfigMaps: where the person who wrote an entry will look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from cachetools import LRUCache, TTLCache

from reserver.errors import ApiError
from reserver.kube.client import ApiClient
from reserver.wire.objects import Metadata
from reserver.wire.store import Problem
from reserver.wire.times import show_moment

log = structlog.get_logger(__name__)

_MAX_MESSAGE = 1024
_BURST = 25
"""Events with one reason for one ConfigMap in ten minutes; more would drown all others (client-go
allows 25)."""

_BURST_WINDOW_S = 600.0


class Recorder:
    """Writes Warning events on store ConfigMaps; of a problem with an entry, one.

    Attributes:
        reported: how many problems were reported, those beyond the burst included.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self._seen: LRUCache[tuple[str, str], bool] = LRUCache(maxsize=16_384)
        self._counts: TTLCache[tuple[str, str], int] = TTLCache(1024, _BURST_WINDOW_S, timer=clock)
        self._queue: asyncio.Queue[tuple[Metadata, str, str]] = asyncio.Queue(maxsize=1000)
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
            self._queue.put_nowait((configmap, reason, message[: _MAX_MESSAGE - len(more)] + more))

    async def run(self) -> None:
        """Write events until cancelled; one that cannot be written is logged and dropped."""
        while True:
            configmap, reason, message = await self._queue.get()
            path = f"/api/v1/namespaces/{configmap.namespace}/events"
            try:
                await self._client.create(path, self._event(configmap, reason, message))
            except ApiError as exc:
                log.warning("event could not be written", why=str(exc))

    def _event(self, configmap: Metadata, reason: str, message: str) -> dict[str, object]:
        now = show_moment(self._clock())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{configmap.name[:200]}.",
                "namespace": configmap.namespace,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": configmap.namespace,
                "name": configmap.name,
                "uid": configmap.uid,
                "resourceVersion": configmap.resource_version,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "reserver"},
            "reportingComponent": "reserver",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
