"""Stands for a Kubernetes Service: one address of the ready replica."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar

_PROBE_SECONDS = 1.0
_PROBE = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
_CHUNK = 65_536

T = TypeVar("T")


class Service:
    """Forwards TCP connections on loopback to a replica whose /readyz is 200; a context manager.

    A connection stays with its replica while both live, even if the replica is no longer ready, as
    with kube-proxy. Without a ready replica a connection is closed. Traffic may be held up, as in a
    network that is cut.

    Args:
        ports: ports of the replicas, on loopback.
    """

    def __init__(self, ports: tuple[int, ...]) -> None:
        self._ports = ports
        self._loop = asyncio.new_event_loop()
        self._calls, self._answers = asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="service", daemon=True)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._calls.set()
        self._answers.set()
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        """Break off all connections."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def part(self, *, calls: bool, answers: bool) -> None:
        """Hold up calls, answers, or both, without closing a connection."""
        self._run(self._hold(calls=calls, answers=answers))

    def heal(self, *, drop: bool) -> None:
        """Lets all go on that was held up; `drop`: breaks off all connections instead."""
        self._run(self._let_go(drop=drop))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _hold(self, *, calls: bool, answers: bool) -> None:
        for is_held, flowing in ((calls, self._calls), (answers, self._answers)):
            if is_held:
                flowing.clear()

    async def _let_go(self, *, drop: bool) -> None:
        if drop:
            await self._break_off()
        self._calls.set()
        self._answers.set()

    async def _close(self) -> None:
        self._server.close()
        await self._break_off()

    async def _break_off(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # asyncio would log that we ended it
            try:
                for port in self._ports:
                    if await _is_ready(port):
                        await self._join(reader, writer, port)
                        break
            finally:
                writer.close()

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        """Pass on what both sides say until one of them ends."""
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        ways = ((reader, forth, self._calls), (back, writer, self._answers))
        tasks = [asyncio.create_task(_pump(*way)) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forth.close()  # First: the service may end, and cancel this, while tasks are awaited.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event
) -> None:
    while True:
        chunk = await reader.read(_CHUNK)
        await flowing.wait()
        if not chunk:
            return
        writer.write(chunk)
        await writer.drain()


async def _is_ready(port: int) -> bool:
    """Ask as a kubelet does."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_PROBE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_PROBE)
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    return False
