"""Listening on an address until a block ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from reserver.errors import ConfigurationError
from reserver.server.door import Door

_BACKLOG = 1024


@asynccontextmanager
async def listening(
    app: web.Application,
    address: tuple[str, int],
    shutdown_s: float,
    door: Door,
) -> AsyncIterator[str]:
    """Serve an application, and yield its base URL; then let requests in flight finish.

    A request whose client has gone is cancelled.

    Args:
        app: what to serve.
        address: IP address and port; 0 for a free one.
        shutdown_s: how long requests in flight may take to finish, in seconds.
        door: who is let in.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    app.middlewares.insert(0, door.let_in)
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=shutdown_s, handler_cancellation=True
    )
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101 - it is set up
    try:
        with _listener(address) as listener:
            host, port = listener.getsockname()[:2]
            async with asyncio.TaskGroup() as tasks:
                accepting = tasks.create_task(door.accept(listener, server))
                try:
                    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                    yield f"{door.scheme}://{where}"
                finally:
                    accepting.cancel()
    finally:
        await runner.cleanup()


def _listener(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as exc:
        problem = f"cannot listen on {address[0]}:{address[1]}: {exc.strerror}"
        raise ConfigurationError(problem) from exc
    listener.settimeout(0)
    return listener
