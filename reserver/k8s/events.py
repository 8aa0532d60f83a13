"""Events on store ConfigMaps, Reservations and pods, where their authors look."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from cachetools import LRUCache, TTLCache

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
"""Events with one reason for one ConfigMap in ten minutes; more would drown all others (client-go
allows 25)."""

_BURST_WINDOW_S = 600.0

_MOST_LOGGED = 100
"""Log lines about the entries of one ConfigMap in ten minutes; it may have thousands of keys."""

_POD_EVENTS = 100
"""Events on pods of a namespace in ten seconds, and on all together less than twice as many: a full
cluster refuses thousands at once."""

_POD_WINDOW_S = 10.0

_MOST_QUEUED = 1000
"""Events that wait to be written; of no namespace more than it leaves to all others."""

_AT_ONCE = 4
"""How many are written at once; bindings have the rest of the connections."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """What an event is about."""

    kind: ObjectKind
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    """An event that is to be written."""

    about: _Subject
    reason: str
    message: str
    is_warning: bool = True
    once: str = ""  # What tells it from others of its reason: there is one event of each.

    def body(self, at: float) -> dict[str, object]:
        """Return it as the API takes it, of a moment in unix seconds."""
        about, now = self.about, show_moment(at)
        involved = {
            **about.kind.reference(),
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        if about.resource_version:
            involved["resourceVersion"] = about.resource_version
        name = {"generateName": f"{about.name[:200]}."}
        if self.once:
            name = {"name": f"{about.name[:200]}.{self.once}.{self.reason.lower()}"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {**name, "namespace": about.namespace or CLUSTER_EVENTS},
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
    """Return a digest of texts to remember: they may be long."""
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).digest()


class Recorder:
    """Writes Warning events; of a problem with an entry, one, and of what keeps a pod, one.

    Attributes:
        queue: of the events that are to be written.
        reported: how many problems were reported, those beyond the burst included.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Write through a client; `clock` gives unix seconds."""
        self._client = client
        self._clock = clock
        self._seen: LRUCache[bytes, bool] = LRUCache(maxsize=16_384)
        self._counts: TTLCache[tuple[str, str], int] = TTLCache(1024, _BURST_WINDOW_S, timer=clock)
        self._told: LRUCache[bytes, bool] = LRUCache(maxsize=16_384)
        self._window = 0.0
        self._told_in_window = FairCount.each(_POD_EVENTS)
        self._queued: set[_Event] = set()
        self._room = FairCount(_MOST_QUEUED)
        self.queue = WorkQueue[_Event]("events")
        self.reported = 0

    def report(
        self, store: Metadata, key: str, error: InvalidInput, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Log a problem with an entry, and queue an event; returns at once.

        Args:
            store: the ConfigMap that has the entry, or the Reservation that is the entry.
            key: the key of the entry, or the name of the Reservation.
            error: field, value and remedy.
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
        """Queue an event on a store, unless an earlier one said the same."""
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
        """Queue an event on a store, unless there are too many, or there is one of this key."""
        if self._count(store, reason) <= _BURST:
            own = (store.namespace, store.name, store.uid, store.resource_version)
            self._put(_Subject(kind, *own), reason, message, once=_digest(key)[:8].hex())

    def note(
        self, store: Metadata, reason: str, message: str, kind: ObjectKind = CONFIG_MAP
    ) -> None:
        """Queue a Normal event on a store, unless there are too many; returns at once."""
        count = self._count(store, reason)
        if count <= _BURST:
            about = _Subject(kind, store.namespace, store.name, store.uid, store.resource_version)
            self._put(about, reason, message, is_warning=False)

    def _count(self, store: Metadata, reason: str) -> int:
        """Count one more with a reason for a store in ten minutes; return how many there are."""
        count = self._counts.get((store.uid, reason), 0) + 1
        self._counts[store.uid, reason] = count
        return count

    def record(self, event: PodEvent) -> None:
        """Queue an event on a pod, once for each cause; returns at once.

        If there are too many, it is dropped, and queued at a later attempt at the pod.
        """
        pod = event.pod
        key = _digest(pod.uid, event.reason, event.cause)
        namespace = pod.name.namespace
        if key in self._told or not self._room.has_room(namespace) or not self._has_turn(namespace):
            return
        self._told[key] = True
        self._put(_Subject(POD, *pod.name, pod.uid), event.reason, event.message)

    def _has_turn(self, namespace: str) -> bool:
        """Count an event on a pod; return False when there were too many lately."""
        now = self._clock()
        if not 0 <= now - self._window < _POD_WINDOW_S:
            self._window, self._told_in_window = now, FairCount.each(_POD_EVENTS)
        if not self._told_in_window.has_room(namespace):
            return False
        self._told_in_window.add(namespace)
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
        """Write events until cancelled; one that is refused is logged and dropped."""
        await self.queue.run(self._write, _AT_ONCE)

    async def _write(self, events: list[_Event]) -> None:
        for event in events:
            with quarantined("event", event.about.name):
                if not await self._is_done(event):
                    continue
            self._queued.discard(event)
            self._room.add(event.about.namespace, -1)
            self.queue.succeeded(event)

    async def _is_done(self, event: _Event) -> bool:
        """Write an event; return False if it is to be tried again."""
        path = f"/api/v1/namespaces/{event.about.namespace or CLUSTER_EVENTS}/events"
        try:
            await self._client.create(path, event.body(self._clock()))
        except ApiError as exc:
            if exc.is_away:
                self.queue.failed(event, exc)
                return False
            if not (event.once and exc.is_conflict):  # Else it is there.
                log.warning("event could not be written", why=str(exc))
        return True
