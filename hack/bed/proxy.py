"""Between reserver and the API server: watches break off or fall silent, bindings fail."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from hack.bed.mishaps import Mishaps
from hack.controlplane.kubeconfig import write_kubeconfig

_PASSED_ON = ("Authorization", "Content-Type", "Accept", "Accept-Encoding", "User-Agent")
_MOVES = re.compile(
    r"/podmoves|/eviction$|/reservations(/|$)|/nodes/|/maintenancewindows/|/pods(/[^/]+)?$"
)
"""Writes of a move (status, seat, status of the seat, eviction, pods of a surge), and of a
MaintenanceWindow (moves, nodes, status)."""

_GONE = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
}
_MESSAGE = "too old resource version"
_GOOD_BYE = 0.25
"""Seconds for TLS connections to close: aiohttp does not wait for them."""

T = TypeVar("T")


@dataclass
class _Watches:
    """Faults of watches; only the proxy's own thread uses it."""

    open: dict[asyncio.Task[Any], web.Request] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)  # paths whose next watch is answered 410 Gone
    expired_pages: set[str] = field(default_factory=set)  # the same of their next page of a list
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    allowed: asyncio.Event = field(default_factory=asyncio.Event)


class Proxy:
    """An API server on loopback, as a context manager; its methods may be called from any thread.

    Args:
        kubeconfig: credentials of the proxy's clients.
        mishaps: faults of bindings, and of writes to pods.
    """

    def __init__(self, kubeconfig: Path, mishaps: Mishaps) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self._token: str = content["users"][0]["user"]["token"]
        self._server: str = cluster["server"]
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._mishaps = mishaps
        self._opened: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="proxy", daemon=True
        )

    def __enter__(self) -> Self:
        """Begins to listen."""
        self._thread.start()
        self._loop = self._opened.result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        """Break off all requests."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def write_kubeconfig(self, path: Path) -> None:
        """Writes a kubeconfig that goes through the proxy."""
        write_kubeconfig(path, {"server": f"http://127.0.0.1:{self._port}"}, self._token)

    def cut(self, *, expire: bool = False) -> int:
        """Breaks off all watches and returns how many; `expire`: they cannot be resumed."""
        return self._run(self._cut(expire=expire))

    def hush(self, *, silent: bool) -> None:
        """Holds back what watches say, or lets it go on; other requests are answered."""
        self._loop.call_soon_threadsafe(_switch, self._watches.flowing, not silent)

    def strand(self) -> None:
        """Lets the watches that are held back never say anything more; later ones flow."""
        self._loop.call_soon_threadsafe(self._strand)

    def refuse_watches(self, *, refuse: bool) -> None:
        """Breaks off each new watch before it is answered, or lets them be."""
        self._loop.call_soon_threadsafe(_switch, self._watches.allowed, not refuse)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(timeout=30)

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        try:
            await self._open()
        except OSError as exc:
            self._opened.set_exception(exc)
            return
        self._opened.set_result(asyncio.get_running_loop())
        await self._ended.wait()
        await self._close()

    async def _open(self) -> None:
        self._watches = _Watches()
        self._watches.flowing.set()
        self._watches.allowed.set()
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(connector=connector)
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port: int = self._runner.addresses[0][1]

    async def _close(self) -> None:
        await self._cut(expire=False)
        await self._runner.cleanup()
        await self._session.close()
        await asyncio.sleep(_GOOD_BYE)

    async def _cut(self, *, expire: bool) -> int:
        watches = self._watches.open.copy()
        for task, request in watches.items():
            if expire:
                self._watches.expired.add(request.path)
                self._watches.expired_pages.add(request.path)
            _abort(request)
            task.cancel()
        return len(watches)

    def _strand(self) -> None:
        self._watches.flowing = asyncio.Event()
        self._watches.flowing.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if request.method in {"POST", "PATCH", "DELETE"}:
                return await self._change(request)
            if request.query.get("watch") == "true":
                return await self._watch(request)
            if "continue" in request.query and request.path in self._watches.expired_pages:
                self._watches.expired_pages.discard(request.path)
                return web.json_response({**_GONE, "message": _MESSAGE}, status=HTTPStatus.GONE)
            return await self._forward(request)
        except (aiohttp.ClientError, ConnectionError):
            return _abort(request)  # as the API server's own connections break off

    async def _change(self, request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/binding"):
            return await self._mishaps.bind(lambda: self._forward(request), request)
        if _MOVES.search(request.path):
            return await self._mishaps.write(lambda: self._forward(request), request)
        if "/pods/" in request.path:
            return await self._mishaps.steer(lambda: self._forward(request))
        return await self._forward(request)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self._watches.allowed.is_set():
            return _abort(request)
        if request.path in self._watches.expired:
            self._watches.expired.discard(request.path)
            event = {"type": "ERROR", "object": {**_GONE, "message": _MESSAGE}}
            return web.json_response(event, dumps=lambda each: json.dumps(each) + "\n")
        task = asyncio.current_task()
        self._watches.open[task] = request  # type: ignore[index,assignment]
        flowing = self._watches.flowing
        try:
            async with self._ask(request) as answer:
                response = web.StreamResponse(status=answer.status)
                response.content_type = answer.content_type
                await response.prepare(request)
                try:
                    async for chunk in answer.content.iter_any():
                        await flowing.wait()
                        await response.write(chunk)
                finally:  # Else TLS takes its time to say good-bye, after the proxy has ended.
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
                return response
        finally:
            del self._watches.open[task]  # type: ignore[arg-type]

    async def _forward(self, request: web.BaseRequest) -> web.Response:
        async with self._ask(request, await request.read()) as answer:
            body = await answer.read()
            return web.Response(body=body, status=answer.status, content_type=answer.content_type)

    def _ask(self, request: web.BaseRequest, body: bytes = b"") -> Any:  # noqa: ANN401 (aiohttp's context manager)
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = URL(self._server + request.raw_path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        return self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=timeout
        )


def _abort(request: web.BaseRequest) -> web.Response:
    """Break off the connection; the returned response is never sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _switch(event: asyncio.Event, on: bool) -> None:  # noqa: FBT001 (called by the event loop)
    (event.set if on else event.clear)()
