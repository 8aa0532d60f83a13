"""Updates the book of SchedPatches from the watch, and writes their statuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from reserver.base.quarantine import quarantined
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ResourceMetadata, decode
from reserver.k8s.watch.back_in_time import watched
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.k8s.work_queue import WorkQueue
from reserver.patches.book import Book, read_marks
from reserver.patches.codec import (
    COLLECTION,
    PatchObject,
    object_path,
    read_object,
)
from reserver.patches.model import PatchName
from reserver.patches.status_codec import (
    PatchStatus,
    patch_body,
    read_record,
    read_status,
    show_invalid,
    show_status,
)
from reserver.reservations.listener import Listener

log = structlog.get_logger(__name__)

SETTLE_S = 0.5
"""Longest delay of the status write after a change of the count, in seconds."""

KEEP_S = 24 * 3600.0
"""Seconds for which an expired SchedPatch is kept."""

_UNSURE_S = 1.0
"""Seconds to the retry of a write while views are not up to date, or after a conflict."""

_LOOK_EVERY_S = 0.1
"""Seconds between checks of the first lists."""

_AT_ONCE = 4
"""Most status writes in flight."""


@dataclass(slots=True)
class _Known:
    """A SchedPatch as it was last read."""

    metadata: ResourceMetadata
    status: PatchStatus
    error: InvalidInput | None


class SchedPatches(Listener):
    """All SchedPatches, with the writes of their statuses.

    Attributes:
        book: decides on new pods.
        reflector: the watch of SchedPatches.
        queue: the SchedPatches whose status may have to be written.
        writes: statuses written so far.
    """

    def __init__(
        self,
        client: ApiClient,
        identity: str,
        clock: Callable[[], float],
        obstacles: Callable[[], tuple[str, ...]],
    ) -> None:
        """Begin without SchedPatches.

        Args:
            identity: the unique name of this process in statuses.
            clock: unix seconds.
            obstacles: returns the reasons why the views of other objects may lack changes.
        """
        self._client = client
        self._clock = clock
        self._other_obstacles = obstacles
        self.book = Book(identity, self._changed)
        self._known: dict[PatchName, _Known] = {}
        self.queue = WorkQueue[PatchName]("SchedPatches")
        self._awaited: dict[PatchName, asyncio.Future[None]] = {}
        self._is_first = True
        self._is_ending = False
        self._fault = ""
        self.reflector = Reflector(client, COLLECTION, _view(self), is_optional=True)
        self.writes = 0

    def obstacles(self) -> tuple[str, ...]:
        """Return the reasons why this process may not patch now."""
        own = self.reflector.obstacle()
        return (*self._other_obstacles(), own) if own else self._other_obstacles()

    def on_pod_patched(self, namespace: str, marks: str) -> None:
        """Count the slots of a pod with this annotation as spent."""
        self.book.pod_seen(namespace, read_marks(marks))

    def put(self, item: PatchObject) -> None:
        """Store a new version of a SchedPatch; an older version is ignored."""
        name, metadata = item.name, item.metadata
        before = self._known.get(name)
        if before is not None and before.metadata.revision > metadata.revision:
            return  # The response to Reserver's write came before this event.
        status = before.status if before is not None else PatchStatus()
        try:
            status = read_status(item.status)
            record = read_record(status)
            entry = self.book.put(read_object(item))
        except InvalidInput as exc:
            self.book.suspend(name)
            self._known[name] = _Known(metadata, status, exc.detached())
        else:
            self._known[name] = _Known(metadata, status, None)
            now = self._clock()
            entry.slots.recorded(record, metadata.revision, now, inherits=self._is_first)
        self.queue.add(name)
        self._wake(name)

    def drop(self, name: PatchName) -> None:
        """Remove a deleted SchedPatch; pods that wait for its slots go on without it."""
        self._known.pop(name, None)
        self.book.drop(name)
        self.queue.discard(name)
        self._wake(name)

    def listed(self) -> None:
        """Record the end of the first list: later stocks are no predecessor's."""
        self._is_first = False

    def names(self) -> tuple[PatchName, ...]:
        """Return the names of all SchedPatches."""
        return tuple(self._known)

    async def stocked(self, names: Iterable[PatchName], patience_s: float) -> None:
        """Wait until the status of one of these patches was written, or `patience_s` has passed."""
        loop = asyncio.get_running_loop()
        futures = []
        for name in names:
            self.queue.add(name)
            futures.append(self._awaited.setdefault(name, loop.create_future()))
        await asyncio.wait(futures, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)

    async def run(self) -> None:
        """Watch, and write statuses, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watched(self.reflector))
            while self.obstacles():  # noqa: ASYNC110 - no common event exists
                await asyncio.sleep(_LOOK_EVERY_S)
            self.book.complete()
            await self.queue.run(self._write_all, _AT_ONCE)

    async def release(self) -> None:
        """Return unused slots to the statuses, for a successor; best effort."""
        self._is_ending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_UNSURE_S):
                for name in tuple(self._known):
                    await self._write(name)

    async def _write_all(self, names: Iterable[PatchName]) -> None:
        for name in names:
            with quarantined("status", name):
                await self._write(name)

    async def _write(self, name: PatchName) -> None:
        known = self._known.get(name)
        if known is None:
            return
        if self.obstacles():
            self.queue.add(name, _UNSURE_S)
            return
        try:
            if self._is_long_over(name):
                await self._client.delete(object_path(name), _as_seen(known.metadata))
                return
            status = self._status(name, known)
            if status is None or status == known.status:
                self.queue.succeeded(name)
                return
            body = patch_body(status, known.metadata)
            answer = await self._client.patch(_status(name), body)
            if self._known.get(name) is known:  # Else the watch was faster, perhaps with its end.
                self.put(decode(PatchObject, answer))
        except ApiError as exc:
            self._failed(name, exc)
        else:
            self.writes += 1
            self.queue.succeeded(name)

    def _status(self, name: PatchName, known: _Known) -> PatchStatus | None:
        now, entry = self._clock(), self.book.get(name)
        if known.error is not None:
            return show_invalid(known.error, known.status, known.metadata, now)
        if entry is None:
            return None
        entry.slots.lapse(now)
        expires_at = entry.patch.expires_at
        times = [entry.slots.next_at()]
        times += [] if expires_at is None else [expires_at, expires_at + KEEP_S]
        for at in times:
            if at is not None and at > now:
                self.queue.add(name, at - now)
        is_over = self._is_ending or entry.patch.is_over(now)
        record = entry.slots.wanted(now, is_over=is_over)
        return show_status(entry, record, known.status, known.metadata, now)

    def _is_long_over(self, name: PatchName) -> bool:
        """Return whether a patch expired more than `KEEP_S` ago, and is to be deleted."""
        entry = self.book.get(name)
        if entry is None or entry.is_suspended or self._is_ending:
            return False
        return entry.patch.is_over(self._clock() - KEEP_S)

    def _failed(self, name: PatchName, error: ApiError) -> None:
        if error.is_absent:
            return
        if error.is_conflict:  # The watch will show the other client's write.
            self.queue.add(name, _UNSURE_S)
            return
        self.queue.failed(name, error)
        fault = advice(error)
        if fault != self._fault:  # One line for each fault, not for each retry.
            log.warning("status of a SchedPatch cannot be written, retrying", why=fault)
            self._fault = fault

    def _wake(self, name: PatchName) -> None:
        awaited = self._awaited.pop(name, None)
        if awaited is not None:
            awaited.set_result(None)

    def _changed(self, name: PatchName) -> None:
        entry = self.book.get(name)
        is_urgent = entry is not None and not entry.slots.has_left and entry.slots.may_have_more
        self.queue.add(name, 0.0 if is_urgent else SETTLE_S)


def _as_seen(metadata: ResourceMetadata) -> dict[str, Any]:
    """Return delete options that fail if the object has changed since it was read."""
    version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    return {"preconditions": version}


def _status(name: PatchName) -> str:
    return f"{object_path(name)}/status"


def _view(patches: SchedPatches) -> ObjectView[PatchObject]:
    return ObjectView(
        PatchObject,
        seen=lambda item, _: patches.put(item),
        gone=lambda key: patches.drop(PatchName(*key)),
        known=patches.names,
        ended=lambda _: patches.listed(),
    )
