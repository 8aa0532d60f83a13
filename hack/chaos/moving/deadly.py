"""Something is done at a write of a move: before it is carried out, or after."""

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
        at: how the path of that write ends; empty for any of a move.
        apart: at which kinds of writes it does not strike.
        but: the name of a PodMove whose writes do not count, or a pattern of several.
        is_done: whether it is carried out before.
        strike: what is done then; in a thread of its own. None for nothing.
        struck: the kind of the write at which it has struck; empty if there was none.
        may_evict: evictions wait for it.
        writes: the paths of what was written of moves, in order.
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
        """Strike at a write that is to come."""
        self.writes.clear()
        self.struck = ""
        self.at, self.apart, self.but, self.is_done = at, apart, but, is_done
        self.strike: Callable[[], object] | None = strike

    def disarm(self) -> None:
        """Strike no more."""
        self.strike = None

    async def write(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        """Forward a write, and strike if it is its turn."""
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
    """Return what a write is, without names: method, path, what a status says, a handover."""
    written = json.loads(body or b"{}")
    written = written if isinstance(written, dict) else {}  # A JSON patch is none.
    status, metadata = written.get("status", {}), written.get("metadata", {})
    is_handover = request.method == "PATCH" and "ownerReferences" in metadata
    said = (status.get("phase"), status.get("reason"), "handover" if is_handover else "")
    words = (request.method, _NAMED.sub(r"/\1/NAME", request.path), *filter(None, said))
    return " ".join(words)
