"""A strike at a write of a move, before the write is carried out or afterwards."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection
from threading import Event

from aiohttp import web

from hack.bed.mishaps import Forward, Mishaps

_OF_WINDOWS = re.compile(r"/podmoves$|/nodes/|/maintenancewindows/")
_NAMED = re.compile(r"/(namespaces|podmoves|reservations|pods)/[^/]+")


class Deadly(Mishaps):
    """Strikes at a write of a move, once.

    Attributes:
        at: end of that write's path; empty for any write of a move.
        apart: kinds of writes without a strike.
        but: name, or pattern, of PodMoves whose writes do not count.
        is_done: whether the write is carried out before the strike.
        strike: called in its own thread; None for no strike.
        struck: kind of the write that was struck; empty for none.
        may_evict: evictions wait for this event.
        writes: paths of the writes of moves, in order.
    """

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.may_evict = Event()
        self.may_evict.set()
        self.writes: list[str] = []
        self.struck = self.at = ""
        self.disarm()

    def arm(
        self,
        strike: Callable[[], object],
        *,
        is_done: bool,
        at: str = "",
        apart: Collection[str] = (),
        but: str = "",
    ) -> None:
        """Strike at a later write."""
        self.writes.clear()
        self.struck = ""
        self.at, self.apart, self.but, self.is_done = at, apart, but, is_done
        self.strike: Callable[[], object] | None = strike

    def disarm(self) -> None:
        """Cancel the strike."""
        self.strike = None

    async def write(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        """Forward a write, and strike if it is the one."""
        if not self.at and _OF_WINDOWS.search(request.path):
            return await forward()
        self.writes.append(request.path)
        if request.path.endswith("/eviction"):
            await asyncio.to_thread(self.may_evict.wait)
        kind = _kind(request, await request.read())
        strike = self.strike
        if strike is None or not self._counts(request.path) or kind in self.apart:
            return await forward()
        self.strike, self.struck = None, kind
        answer = await forward() if self.is_done else web.Response(status=500)
        await asyncio.to_thread(strike)
        return answer

    def _counts(self, path: str) -> bool:
        is_of_another = self.but and re.search(rf"/{self.but}[-/]", path)
        return path.endswith(self.at) and not is_of_another


def _kind(request: web.BaseRequest, body: bytes) -> str:
    """Return the kind of a write without names: method, path, status, handover."""
    written = json.loads(body or b"{}")
    written = written if isinstance(written, dict) else {}  # A JSON patch is a list.
    status, metadata = written.get("status", {}), written.get("metadata", {})
    is_handover = request.method == "PATCH" and "ownerReferences" in metadata
    said = (status.get("phase"), status.get("reason"), "handover" if is_handover else "")
    words = (request.method, _NAMED.sub(r"/\1/NAME", request.path), *filter(None, said))
    return " ".join(words)
