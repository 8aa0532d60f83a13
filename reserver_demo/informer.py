"""An informer of one resource: lists, watches, and lists again if the watch cannot resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Generic, TypeVar

import structlog

from reserver.errors import ApiError
from reserver.k8s.objects.objects import ObjectList, PartialObject, Status, WatchEvent, decode
from reserver_demo.client import ApiClient
from reserver_demo.clock import Clock

_RETRY_SECONDS = 0.5

log = structlog.get_logger()

T = TypeVar("T")
Handler = Callable[[T | None, T | None], None]
"""Called with an object before and after a change; None if absent."""


class Informer(Generic[T]):
    """Reports each change of a resource's objects once, in order.

    Args:
        client: the client of the API server.
        path: the resource's path.
        parse: converts an object's JSON to the value for `handle`.
        handle: called with each change.
        clock: the clock for the pause after a failure.
    """

    def __init__(
        self,
        client: ApiClient,
        path: str,
        parse: Callable[[bytes], T],
        handle: Handler[T],
        clock: Clock,
    ) -> None:
        self._client = client
        self._path = path
        self._parse = parse
        self._handle = handle
        self._clock = clock
        self._known: dict[tuple[str, str], T] = {}
        self.synced = asyncio.Event()
        """Set after the first list."""

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        revision = ""
        while True:
            try:
                if not revision:
                    revision = await self._list()
                revision = await self._watch(revision)
            except ApiError as error:
                log.debug("watch_interrupted", path=self._path, error=str(error))
                if error.status == HTTPStatus.GONE:
                    revision = ""
                else:
                    await self._clock.sleep(_RETRY_SECONDS)

    async def _list(self) -> str:
        listed = decode(ObjectList, await self._client.send("GET", self._path))
        fresh = {_key(raw): bytes(raw) for raw in listed.items or ()}
        for key in self._known.keys() - fresh.keys():
            self._handle(self._known.pop(key), None)
        for key, raw in fresh.items():
            self._changed(key, self._parse(raw))
        self.synced.set()
        return listed.metadata.resource_version

    async def _watch(self, revision: str) -> str:
        query = {"resourceVersion": revision, "allowWatchBookmarks": "true"}
        async for event in self._client.watch(self._path, query):
            revision = self._take(event)
        return revision

    def _take(self, event: WatchEvent) -> str:
        raw = bytes(event.object)
        if event.type == "ERROR":
            status = decode(Status, raw)
            raise ApiError(status.code, status.reason, status.message)
        metadata = decode(PartialObject, raw).metadata
        key = (metadata.namespace, metadata.name)
        if event.type == "DELETED":
            if key in self._known:
                self._handle(self._known.pop(key), None)
        elif event.type != "BOOKMARK":
            self._changed(key, self._parse(raw))
        return metadata.resource_version

    def _changed(self, key: tuple[str, str], after: T) -> None:
        before = self._known.get(key)
        self._known[key] = after
        self._handle(before, after)


def _key(raw: object) -> tuple[str, str]:
    metadata = decode(PartialObject, bytes(raw)).metadata  # type: ignore[call-overload]
    return metadata.namespace, metadata.name
