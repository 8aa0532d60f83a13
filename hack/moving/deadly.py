"""Something is done at a write of a move: before it is carried out, or after."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from threading import Event

from aiohttp import web

from hack.chaos.mishaps import Forward, Mishaps


class Deadly(Mishaps):
    """Strikes at a write of a move, once.

    Attributes:
        at: how the path of that write ends; empty for none, or for any.
        number: at which of the writes that end so, the first is 0.
        but: the name of a PodMove whose writes count no more: its seat may be deleted again.
        is_done: whether it is carried out before.
        strike: what is done then; in a thread of its own. None for nothing.
        may_evict: evictions wait for it.
        writes: what was written of moves, in order.
    """

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.may_evict = Event()
        self.may_evict.set()
        self.writes: list[str] = []
        self.disarm()

    def arm(
        self,
        strike: Callable[[], object],
        *,
        is_done: bool,
        at: str = "",
        number: int = 0,
        but: str = "",
    ) -> None:
        """Strike at a write that is to come."""
        self.writes.clear()
        self.at, self.number, self.but, self.is_done = at, number, but, is_done
        self.strike: Callable[[], object] | None = strike

    def disarm(self) -> None:
        """Strike no more."""
        self.strike = None
        self.but = ""

    async def write(self, forward: Forward, request: web.BaseRequest) -> web.Response:
        """Forward a write, and strike if it is its turn."""
        if self.but and re.search(rf"/{self.but}[-/]", request.path):
            return await forward()
        self.writes.append(f"{request.method} {request.path}")
        if request.path.endswith("/eviction"):
            await asyncio.to_thread(self.may_evict.wait)
        if self.strike is None or not request.path.endswith(self.at):
            return await forward()
        self.number -= 1
        if self.number >= 0:
            return await forward()
        strike, self.strike = self.strike, None
        answer = await forward() if self.is_done else web.Response(status=500)
        await asyncio.to_thread(strike)
        return answer
