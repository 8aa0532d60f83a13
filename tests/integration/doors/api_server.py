"""An API server in front of the embedded one, which can delay reviews of tokens and rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from reserver_demo.cluster import EmbeddedCluster

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_PASSED_ON = ("Content-Type", "Accept")


class Reviewing:
    """Answers reviews, and passes on all else.

    Whoever sends a token is the user of that name, and may do everything, but for users that begin
    with ``weak``; a token that begins with ``junk`` is nobody's.

    Attributes:
        hanging: the path whose reviews wait for `answers`; empty for none.
        waiting: how many do.
        asked: the reviews that were asked for.
        answers: set it to have them answered.
    """

    def __init__(self, server: str, session: aiohttp.ClientSession) -> None:
        self._server = server
        self._session = session
        self.hanging = ""
        self.waiting = 0
        self.asked: list[Any] = []
        self.answers = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**23)
        app.router.add_post(TOKENS, self._token)
        app.router.add_post(RIGHTS, self._right)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        return app

    async def _token(self, request: web.Request) -> web.Response:
        spec = await self._review(request)
        token = spec["token"]
        if token.startswith("junk"):
            return web.json_response({"status": {"authenticated": False}}, status=201)
        said = {"authenticated": True, "user": {"username": token}}
        return web.json_response({"status": said}, status=201)

    async def _right(self, request: web.Request) -> web.Response:
        spec = await self._review(request)
        allowed = not spec["user"].startswith("weak")
        return web.json_response({"status": {"allowed": allowed}}, status=201)

    async def _review(self, request: web.Request) -> dict[str, Any]:
        spec: dict[str, Any] = json.loads(await request.read())["spec"]
        self.asked.append(spec)
        if request.path == self.hanging:
            self.waiting += 1
            await self.answers.wait()
        return spec

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        sent = self._session.request(
            request.method,
            f"{self._server}{request.path_qs}",
            data=await request.read() or None,
            headers=headers,
        )
        async with sent as found:
            passed = web.StreamResponse(status=found.status)
            passed.content_type = found.content_type
            await passed.prepare(request)
            async for chunk in found.content.iter_any():
                await passed.write(chunk)
        return passed


@asynccontextmanager
async def reviewing(cluster: EmbeddedCluster, kubeconfig: Path) -> AsyncIterator[Reviewing]:
    """Stand in front of a cluster's API server, and write a kubeconfig that leads here."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
        here = Reviewing(cluster.url, session)
        runner = web.AppRunner(here.application(), access_log=None, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            cluster.write_kubeconfig(kubeconfig, url)
            yield here
        finally:
            here.answers.set()
            await runner.cleanup()
