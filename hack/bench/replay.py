"""A client without an API server: pages and events from memory, to time their reader."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from reserver.k8s.client import ApiClient
from reserver.k8s.watch.collection import PAGE
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector


class Replay:
    """Hands out pages, then events, and measures for how long each keeps the reader busy.

    Attributes:
        busy: seconds from handing out a page or an event to the request for the next one.
    """

    def __init__(
        self,
        pages: Iterator[bytes],
        events: Sequence[bytes] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.busy: list[float] = []
        self._clock = clock
        self._pages = pages
        self._events = events
        self._ended = asyncio.Event()
        self._handed_out: float | None = None

    async def feed(self, view: ObjectView[Any]) -> None:
        """Make a reflector read all pages and events into a view."""
        reflector = Reflector(cast("ApiClient", self), "/", view)
        reading = asyncio.create_task(reflector.run())
        await self._ended.wait()
        reading.cancel()
        await asyncio.wait([reading])

    async def get_bounded(
        self, _path: str, _most_bytes: int, _params: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the next page."""
        self._stop_clock()
        page = next(self._pages)
        self._start_clock()
        return page

    async def watch(self, _path: str, _params: Mapping[str, str], _: float) -> AsyncIterator[bytes]:
        """Yield the events, then block."""
        self._stop_clock()
        for event in self._events:
            self._start_clock()
            yield event
            self._stop_clock()
        self._ended.set()
        await asyncio.Event().wait()

    def _start_clock(self) -> None:
        self._handed_out = self._clock()

    def _stop_clock(self) -> None:
        if self._handed_out is not None:
            self.busy.append(self._clock() - self._handed_out)
        self._handed_out = None


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = "1"


class _Item(msgspec.Struct):
    metadata: _Metadata


def _revision(item: bytes) -> int:
    return int(msgspec.json.decode(item, type=_Item).metadata.resource_version)


def pages(items: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Yield `count` items in pages, as the API server sends a list: no item is newer than that."""
    rest, revision = iter(items), 1
    for start in range(0, count, PAGE):
        last = min(start + PAGE, count)
        raws = [msgspec.Raw(next(rest)) for _ in range(start, last)]
        revision = max([revision, *map(_revision, raws)])
        metadata = {"resourceVersion": str(revision)}
        metadata |= {"continue": "more"} if last < count else {}
        yield msgspec.json.encode({"kind": "List", "metadata": metadata, "items": raws})
