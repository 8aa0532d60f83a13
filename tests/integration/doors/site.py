"""An HTTP listener, and what came through its door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import HttpRequest, HttpResponse, ListenerLimits, Paths
from tests.integration.doors.wire import call, wire

SOON_S = 0.05

JSON = "Content-Type: application/json"

HEALTHZ = call("GET /healthz HTTP/1.1")

BIND = call("POST /bind HTTP/1.1", JSON, body=b"{}")

ATTACKER, OTHERS, KUBELET = "127.0.0.2", ("127.0.0.3", "127.0.0.4"), "127.0.0.9"


class Site:
    """A listener, and what came through its door."""

    def __init__(self, limits: ListenerLimits) -> None:
        self.handled: list[str] = []
        self.refused: list[str] = []
        self.url = ""
        self.answers = asyncio.Event()
        self.answers.set()
        self.door = Access(limits, Hosts.of("127.0.0.1", ()), self.refused.append)

    def paths(self) -> Paths:
        methods = {"/filter": "POST", "/bind": "POST", "/healthz": "GET"}
        return {path: (method, self._handle) for path, method in methods.items()}

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        self.handled.append(f"{request.method} {request.path}")
        await self.answers.wait()
        size = int(request.target.partition("?bytes=")[2] or "0")
        return HttpResponse(b"x" * size or request.body)

    async def is_well(self, peer: str = KUBELET) -> bool:
        """Whether a probe is answered."""
        async with wire(self.url, peer) as probe:
            probe.say(HEALTHZ)
            return (await probe.answer())[0] == 200


@asynccontextmanager
async def serving(limits: ListenerLimits, **changed: Any) -> AsyncIterator[Site]:
    site = Site(replace(limits, **changed))
    async with listening(site.paths(), ("127.0.0.1", 0), 1.0, site.door) as site.url:
        yield site
