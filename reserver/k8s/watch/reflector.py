"""Keeps a view of one collection up to date: list, then watch, repeatedly.

The rules are those of client-go's tools/cache/reflector.go: resume from the last resourceVersion,
list again after 410 Gone, back off with jitter, treat a silent connection as broken.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import structlog

from reserver.base.pacer import Backoff, Pacer
from reserver.errors import ApiError, InvalidInput, WentBack, cause
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ObjectList, metadata_of, read_event_of
from reserver.k8s.watch.collection import Enclosing, Pages
from reserver.k8s.watch.lag import RELIST_AFTER_S, STALE_AFTER_S, Lag, catch_up, require_progress
from reserver.k8s.watch.object_view import Key, ObjectView

log = structlog.get_logger(__name__)

IDLE_LIMIT_S = 90.0
"""Longest silence of a watch, in seconds. The API server sends a bookmark every minute."""

_WATCH_TIMEOUT_S = (1800, 3600)
"""Range of seconds, longer than client-go's: after each end, bindings wait a second to catch up."""

_SHORTEST_WATCH_S = 1.0
_HEALTHY_S = 2.0
_BACKOFF_S = (0.2, 5.0)
"""First and longest pause, in seconds: no call is decided meanwhile, and replicas are few."""

ABSENT_PAUSE_S = 2.0
"""Longest time for which a new collection remains unread, in seconds."""

ABSENT_AFTER_S = 30.0
"""Seconds for which a known collection must be absent to count as gone."""


class Reflector:
    """Keeps a view of one collection up to date.

    Attributes:
        selector: query parameters of lists and watches.
        view: the view to keep up to date.
        is_optional: the API server need not serve the collection.
        enclosing: CRDs or namespaces; while one is being deleted or gone, the view is frozen.
        current: set while the watch has shown all changes before its start.
        synced: set once the collection has been listed.
        absent: the API server does not serve the collection, so it is empty.
        lists: number of lists.
        watches: number of watches.
        last_change: object and resourceVersion of the last watch event; None after a list.
    """

    def __init__(
        self,
        client: ApiClient,
        path: str,
        view: ObjectView[Any],
        selector: Mapping[str, str] | None = None,
        *,
        is_optional: bool = False,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep a view up to date; `timer` returns monotonic seconds.

        With `is_optional` the API server need not serve the collection (its CRD may be missing):
        meanwhile the collection is empty.
        """
        self._client = client
        self.path = path
        self.view = view
        self.selector = dict(selector or {})
        self._pages = Pages(client, path)
        self.is_optional = is_optional
        self.enclosing: Collection[Enclosing] = ()
        self._now = timer
        self._pacer = Pacer()
        self._version = ""  # resourceVersion to resume from; empty to list.
        self._backoff = Backoff(*_BACKOFF_S)
        self._complaint = ""
        self._lag = Lag()
        self.current = self._lag.over
        self._accepted_at: float | None = None  # Start of the open watch.
        self._watching: asyncio.TaskGroup | None = None  # Tasks of the open watch.
        self._catching_up: asyncio.Task[None] | None = None
        self.synced = asyncio.Event()
        self.absent = False
        self._unknown_at: float | None = None  # Start of the API server's 404 answers.
        self._away_since: float | None = None  # Start of the API server's silence.
        self.lists = self.watches = 0
        self.last_change: tuple[Key, int] | None = None

    def __str__(self) -> str:
        """Return path and selector of the collection."""
        selector = ",".join(f"{key}={value}" for key, value in self.selector.items())
        return f"{self.path}?{selector}" if selector else self.path

    def distrust(self, seconds: float) -> None:
        """Treat changes of the last seconds as missed until the watch has shown them."""
        self._lag.begin(self._now() - seconds)
        if self._watching is not None:
            self._catch_up(self._watching)

    def obstacle(self) -> str:
        """Return the reason why calls cannot be decided on the view; empty if they can."""
        is_listed, since = self.synced.is_set(), self._lag.since
        if is_listed and (since is None or self._now() - since <= STALE_AFTER_S):
            return ""
        why = f": {self._complaint}" if self._complaint else ""
        return f"{self} is {'out of date' if is_listed else 'not listed yet'}{why}"

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            WentBack: the API server's data is older than the view.
        """
        while True:
            try:
                if not self._version:
                    self._version = await self._list()
                await self._watch()
            except ApiError as exc:
                if exc.is_forgotten:
                    self._version = ""
                    self._backoff.succeeded()
                if exc.is_absent:
                    self._version = ""
                    if await self._is_absent():
                        await asyncio.sleep(ABSENT_PAUSE_S)
                        continue
                await self._back_off(exc)
            except InvalidInput as exc:
                self._version = ""
                await self._back_off(ApiError(0, "Malformed", f"malformed answer: {exc}"))

    async def _list(self) -> str:
        """List all pages and return the resourceVersion to watch from.

        Without a resourceVersion the API server answers with the latest state, so a new process
        sees every binding of the previous one.
        """
        began = self._now()
        self.lists += 1
        seen = 0 if self.absent else self._lag.revision
        self.view.list_began(seen)
        asked = asyncio.create_task(self._page(""))
        try:
            while True:
                page = await asked
                require_progress(seen, page.metadata.revision)
                token = page.metadata.continue_
                if token:  # The API server prepares the next page while this page is processed.
                    asked = asyncio.create_task(self._page(token))
                for item in page.items or ():
                    await self._pacer.run(self.view.listed(item))
                if not token:
                    break
        finally:
            asked.cancel()
        await self.require_kept(page.metadata.revision)
        await self._pacer.run(self.view.list_ended(page.metadata.revision))
        if self._complaint or self.absent or not self.synced.is_set():
            log.info("collection listed", collection=str(self))
        self._recovered()
        self.last_change = None
        self._lag.listed(began, page.metadata.revision)
        self.absent, self._unknown_at, self._away_since = False, None, None
        self.synced.set()
        return page.metadata.resource_version

    async def _page(self, token: str) -> ObjectList:
        return await self._pages.page(self.selector | ({"continue": token} if token else {}))

    async def require_kept(self, revision: int) -> None:
        """Return if no CRD or namespace of the collection was being deleted at `revision`.

        Raises:
            ApiError: one was being deleted or is gone, or the API server did not answer.
        """
        for each in self.enclosing:
            await each.require_kept(revision)

    async def _watch(self) -> None:
        """Follow changes until the API server ends the watch."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._follow(tasks)
        except ExceptionGroup as group:
            raise cause(group, ApiError, InvalidInput, WentBack) from None

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        self.watches += 1
        params = {
            **self.selector,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_WATCH_TIMEOUT_S)),  # noqa: S311 - spreads load
        }
        began, version = self._now(), self._version
        try:
            async with aclosing(self._client.watch(self.path, params, IDLE_LIMIT_S)) as lines:
                while (line := await self._pacer.awaited(anext(lines, None))) is not None:
                    if line:
                        await self._take(line)
                    else:
                        self._accepted(tasks)
                        self._catch_up(tasks)
        finally:
            self._watching = None
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._lag.begin(self._now())
        if self._version == version and self._now() - began < _SHORTEST_WATCH_S:
            raise ApiError(0, "ShortWatch", "the API server ended a watch at once")

    def _accepted(self, tasks: asyncio.TaskGroup) -> None:
        now = self._now()
        if self._away_since is not None and now - self._away_since > RELIST_AFTER_S:
            raise ApiError(HTTPStatus.GONE, "Away", "the API server was away for long")
        self._accepted_at, self._watching, self._away_since = now, tasks, None

    def _catch_up(self, tasks: asyncio.TaskGroup) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._catching_up = tasks.create_task(catch_up(self._client, self, self._lag))

    async def _take(self, line: bytes) -> None:
        event = read_event_of(self.view.events, line)
        if event.type == "BOOKMARK":
            metadata = metadata_of(event.object)
        elif event.type == "DELETED":
            await self.require_kept(metadata_of(event.object).revision)
            metadata = await self._pacer.run(self.view.deleted(event.object))
        else:
            metadata = await self._pacer.run(self.view.changed(event.object))
        revision = metadata.revision
        require_progress(self._lag.revision, revision)
        if event.type != "BOOKMARK":
            self.last_change = (metadata.namespace, metadata.name), revision
        self._version = metadata.resource_version
        self._recovered()
        self._lag.reached(revision)
        await self._pacer.give_way()  # Thousands of lines may have come at once.

    async def _is_absent(self) -> bool:
        """Handle a collection that is not served; return whether it counts as empty.

        A starting API server answers 503 until it knows all CRDs. When a CRD is removed, a watch
        shows the deletion of its objects first; so a known collection is out of date before it
        counts as gone.
        """
        if not self.is_optional:
            return False
        self._unknown_at = self._unknown_at or self._now()
        was_there = self.synced.is_set() and not self.absent
        if was_there and self._now() - self._unknown_at < ABSENT_AFTER_S:
            return False
        if not self.absent:
            log.info("collection does not exist, nothing is read from it", collection=str(self))
        self.absent = True
        self.view.list_began()
        await self._pacer.run(self.view.list_ended(0))
        self._recovered()
        self._lag.end()
        self.synced.set()
        return True

    def _recovered(self) -> None:
        self._backoff.succeeded()
        self._complaint = ""

    async def _back_off(self, error: ApiError) -> None:
        # A connection that was silent until its limit may have been dead for all that time.
        silent_s = IDLE_LIMIT_S if error.reason == "Timeout" else 0.0
        since = self._now() - silent_s
        self._lag.begin(since)
        if self._away_since is None and not error.status:
            self._away_since = since
        if self._accepted_at is not None and self._now() - self._accepted_at > _HEALTHY_S:
            self._backoff.succeeded()  # The watch was healthy, perhaps without an event.
        self._accepted_at = None
        complaint = advice(error)
        if complaint != self._complaint:  # One line for each new reason, not for each attempt.
            log.warning("collection cannot be read, retrying", collection=str(self), why=complaint)
        self._complaint = complaint
        await self._backoff.sleep()
