"""One collection of the API server, listed once and watched: every write becomes a line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import urllib3
from kubernetes.client.exceptions import ApiException

_GONE = 410
_RETRY_S = 0.1
_WATCH_S = 10
"""Seconds of a watch. The API server sends a bookmark before it ends a watch, and the gap after a
restart of the API server begins at the last bookmark, so this is short."""
_SILENCE_S = _WATCH_S + 5
_FAULTS = (urllib3.exceptions.HTTPError, ApiException, OSError, msgspec.DecodeError)

Write = Callable[[str, str, dict[str, Any]], None]
"""Takes collection, type and object of a line."""


class _Expired(Exception):
    """The API server no longer has the revisions since the last event."""


class Watch(threading.Thread):
    """Lists and watches one collection until stopped; survives restarts of the API server.

    Attributes:
        listed: set once the first list is written.
    """

    def __init__(
        self, collection: str, request: Callable[..., Any], write: Write, stopping: threading.Event
    ) -> None:
        """Write to `write` what `request` (a `list_…` function of the client) gives."""
        super().__init__(name=f"watch-{collection}", daemon=True)
        self.listed = threading.Event()
        self._collection = collection
        self._request = request
        self._write = write
        self._stopping = stopping
        self._revision = ""
        self._must_list = True
        self._known: dict[str, str] = {}
        self._lost_at: float | None = None

    def run(self) -> None:
        """Follow the collection."""
        while not self._stopping.is_set():
            try:
                if self._must_list:
                    self._list()
                self._follow()
            except _Expired:
                self._must_list = True
            except _FAULTS:
                self._lost_at = self._lost_at or time.time()
                self._stopping.wait(_RETRY_S)

    def _list(self) -> None:
        """Record the current objects, and the gap before them."""
        response = self._request(_preload_content=False, _request_timeout=(3, 60))
        document = msgspec.json.decode(response.data)
        revision = document["metadata"]["resourceVersion"]
        items = {_key(item): item for item in document["items"]}
        if self._revision:
            gap = {"since": self._revision, "gone": sorted(self._known.keys() - items.keys())}
            self._write(self._collection, "GAP", {"metadata": {"resourceVersion": revision}, **gap})
        for key, item in items.items():
            if self._known.get(key) != item["metadata"]["resourceVersion"]:
                self._write(self._collection, "LISTED", item)
        self._known = {key: item["metadata"]["resourceVersion"] for key, item in items.items()}
        self._revision = revision
        self._must_list = False
        self.listed.set()

    def _follow(self) -> None:
        response = self._request(
            watch=True,
            resource_version=self._revision,
            allow_watch_bookmarks=True,
            timeout_seconds=_WATCH_S,
            _preload_content=False,
            _request_timeout=(3, _SILENCE_S),
        )
        self.found()
        try:
            for line in _lines(response):
                self._take(msgspec.json.decode(line))
                if self._stopping.is_set():
                    return
        finally:
            response.close()

    def _take(self, event: dict[str, Any]) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            if item.get("code") == _GONE:
                raise _Expired
            raise ApiException(status=item.get("code"), reason=item.get("message"))
        self._revision = item["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        if kind == "DELETED":
            self._known.pop(_key(item), None)
        else:
            self._known[_key(item)] = self._revision
        self._write(self._collection, kind, item)

    def found(self) -> None:
        """Write how long the API server could not be reached, if it could not."""
        if self._lost_at is not None:
            self._write(self._collection, "OUTAGE", {"since": self._lost_at})
            self._lost_at = None


def _key(item: dict[str, Any]) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _lines(response: Any) -> Iterator[bytes]:  # noqa: ANN401 - the client's raw response
    rest = b""
    for chunk in response.stream(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
