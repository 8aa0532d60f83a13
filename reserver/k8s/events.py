"""Events on store ConfigMaps, Reservations and pods, for their authors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from cachetools import LRUCache

from reserver.base.fairness import FairCount
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import CONFIG_MAP, POD, Metadata, ObjectKind
from reserver.k8s.objects.times import show_moment
from reserver.k8s.work_queue import WorkQueue
from reserver.printable import printable
from reserver.scheduling.pod_events import PodEvent

log = structlog.get_logger(__name__)

_MAX_MESSAGE = 1024
CLUSTER_EVENTS = "default"
"""The namespace of events on objects of no namespace."""

_BURST = 25
"""Most events with one reason for one ConfigMap in ten minutes; more would drown all others
(client-go allows 25)."""

_BURST_WINDOW_S = 600.0

_MOST_LOGGED = 100
"""Most log lines about entries of one ConfigMap in ten minutes."""

_POD_EVENTS = 100
"""Most events on pods of one namespace in ten seconds; all namespaces together get less than twice
as many. A full cluster refuses thousands of pods at once."""

_POD_WINDOW_S = 10.0

_MOST_QUEUED = 1000
"""Most events that wait to be written; a namespace may use half of the queue (`FairCount`)."""

_AT_ONCE = 4
"""Most event writes in flight; bindings have the other connections."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """The object of an event."""

    kind: ObjectKind
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    """An event to write."""

    subject: _Subject
    reason: str
    message: str
    is_warning: bool = True
    once: str = ""  # Part of the event's name: an event with the same name is written once.

    def body(self, at: float) -> dict[str, object]:
        """Return the request body of the event at a moment in unix seconds."""
        subject, now = self.subject, show_moment(at)
        involved = {
            **subject.kind.reference(),
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        }
        if subject.resource_version:
            involved["resourceVersion"] = subject.resource_version
        name = {"generateName": f"{subject.name[:200]}."}
        if self.once:
            name = {"name": f"{subject.name[:200]}.{self.once}.{self.reason.lower()}"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {**name, "namespace": subject.namespace or CLUSTER_EVENTS},
            "involvedObject": involved,
            "type": "Warning" if self.is_warning else "Normal",
            "reason": self.reason,
            "message": self.message,
            "source": {"component": "reserver"},
            "reportingComponent": "reserver",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


def _digest(*parts: str) -> bytes:
    """Return a short digest of texts, which may be long, as a cache key."""
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).digest()


class Recorder:
    """Writes events; one for each problem of an entry, and one for each cause that keeps a pod.

    Attributes:
        queue: the events to write.
        reported: number of reported problems, including those beyond the burst.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write with `client`; `clock` returns unix seconds."""
        self._client = client
        self._clock = clock
        self._seen: LRUCache[bytes, bool] = LRUCache(maxsize=16_384)
        self._counts: LRUCache[tuple[str, str], tuple[float, int]] = LRUCache(maxsize=1024)
        self._sent: LRUCache[bytes, bool] = LRUCache(maxsize=16_384)
        self._window = 0.0
        self._in_window = FairCount.each(_POD_EVENTS)
        self._queued: set[_Event] = set()
        self._room = FairCount(_MOST_QUEUED)
        self.queue = WorkQueue[_Event]("events")
        self.reported = 0

    def report(
        self, store: Metadata, key: str, error: InvalidInput, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Log a problem with an entry, and queue an event; returns at once.

        Args:
            store: the ConfigMap of the entry, or the Reservation itself.
            key: the key of the entry, or the name of the Reservation.
            error: field, problem and remedy.
            kind: the kind of `store`.
        """
        message = f"{printable(key)}: {error}"
        seen = _digest(store.uid, message)
        if seen in self._seen:
            return
        self._seen[seen] = True
        self.reported += 1
        count = self._count(store, "")
        if count <= _MOST_LOGGED:
            log.warning(
                "reservation not enforced",
                store=f"{store.namespace}/{store.name}",
                key=key,
                field=error.path,
                problem=error.problem,
                remedy=error.remedy,
                **({"more": "in its status only"} if count == _MOST_LOGGED else {}),
            )
        self.warn(store, "InvalidReservation", message, kind)

    def warn_once(
        self, store: Metadata, reason: str, message: str, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Queue an event on a store, unless an earlier event had the same message."""
        seen = _digest(store.uid, message)
        if seen not in self._seen:
            self._seen[seen] = True
            self.warn(store, reason, message, kind)

    def warn(
        self, store: Metadata, reason: str, message: str, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Queue an event on a store, unless there are too many; returns at once."""
        count = self._count(store, reason)
        if count <= _BURST:
            more = " (the rest is in the status)" if count == _BURST else ""
            own = (store.namespace, store.name, store.uid, store.resource_version)
            self._put(_Subject(kind, *own), reason, message, more)

    def warn_once_ever(
        self, key: str, store: Metadata, reason: str, message: str, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Queue an event on a store, once for each `key`, unless there are too many."""
        if self._count(store, reason) <= _BURST:
            own = (store.namespace, store.name, store.uid, store.resource_version)
            self._put(_Subject(kind, *own), reason, message, once=_digest(key)[:8].hex())

    def note(
        self, store: Metadata, reason: str, message: str, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Queue a Normal event on a store, unless there are too many; returns at once."""
        count = self._count(store, reason)
        if count <= _BURST:
            subject = _Subject(kind, store.namespace, store.name, store.uid, store.resource_version)
            self._put(subject, reason, message, is_warning=False)

    def _count(self, store: Metadata, reason: str) -> int:
        """Count an event with a reason for a store; return the count of its ten minutes."""
        now = self._clock()
        began, count = self._counts.get((store.uid, reason), (now, 0))
        if not 0 <= now - began < _BURST_WINDOW_S:
            began, count = now, 0
        self._counts[store.uid, reason] = began, count + 1
        return count + 1

    def record(self, event: PodEvent) -> None:
        """Queue an event on a pod, once for each cause; returns at once.

        Above the limits the event is dropped, and queued at a later attempt to schedule the pod.
        """
        pod = event.pod
        key = _digest(pod.uid, event.reason, event.cause)
        namespace = pod.name.namespace
        if key in self._sent or not self._room.has_room(namespace) or not self._has_turn(namespace):
            return
        self._sent[key] = True
        self._put(_Subject(POD, *pod.name, pod.uid), event.reason, event.message)

    def _has_turn(self, namespace: str) -> bool:
        """Count an event on a pod; return False above the limits of the last ten seconds."""
        now = self._clock()
        if not 0 <= now - self._window < _POD_WINDOW_S:
            self._window, self._in_window = now, FairCount.each(_POD_EVENTS)
        if not self._in_window.has_room(namespace):
            return False
        self._in_window.add(namespace)
        return True

    def _put(
        self,
        subject: _Subject,
        reason: str,
        message: str,
        more: str = "",
        *,
        is_warning: bool = True,
        once: str = "",
    ) -> None:
        text = printable(message)[: _MAX_MESSAGE - len(more)] + more
        event = _Event(subject, reason, text, is_warning, once)
        if event not in self._queued and self._room.has_room(subject.namespace):
            self._queued.add(event)
            self._room.add(subject.namespace)
            self.queue.add(event)

    async def run(self) -> None:
        """Write events until cancelled; a refused event is logged and dropped."""
        await self.queue.run(self._write, _AT_ONCE)

    async def _write(self, events: list[_Event]) -> None:
        for event in events:
            with quarantined("event", event.subject.name):
                if not await self._is_done(event):
                    continue
            self._queued.discard(event)
            self._room.add(event.subject.namespace, -1)
            self.queue.succeeded(event)

    async def _is_done(self, event: _Event) -> bool:
        """Write an event; return False if it has to be retried."""
        path = f"/api/v1/namespaces/{event.subject.namespace or CLUSTER_EVENTS}/events"
        try:
            await self._client.create(path, event.body(self._clock()))
        except ApiError as exc:
            if exc.is_away:
                self.queue.failed(event, exc)
                return False
            if not (event.once and exc.is_conflict):  # On a conflict the event exists already.
                log.warning("event could not be written", why=str(exc))
        return True
