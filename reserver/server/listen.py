"""Listening on an address until a block ends."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from reserver.errors import ConfigurationError


@asynccontextmanager
async def listening(
    app: web.Application,
    address: tuple[str, int],
    shutdown_s: float,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve an application, and yield its base URL; then let requests in flight finish.

    A request whose client has gone is cancelled.

    Args:
        app: what to serve.
        address: IP address and port; 0 for a free one.
        shutdown_s: how long requests in flight may take to finish, in seconds.
        tls: None for plain HTTP.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=shutdown_s, handler_cancellation=True
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *address, ssl_context=tls).start()
        except OSError as exc:
            problem = f"cannot listen on {address[0]}:{address[1]}: {exc.strerror}"
            raise ConfigurationError(problem) from exc
        host, port = runner.addresses[0][:2]
        scheme = "https" if tls else "http"
        yield f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    finally:
        await runner.cleanup()
