"""Listens on an address until a block ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reserver.errors import ConfigurationError
from reserver.http.access import Access
from reserver.http.message import Paths

_BACKLOG = 1024


@asynccontextmanager
async def listening(
    paths: Paths, address: tuple[str, int], shutdown_s: float, access: Access
) -> AsyncIterator[str]:
    """Serve paths, and yield their base URL; then let requests in flight finish.

    A request whose client has gone is cancelled. Port 0 stands for a free one.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    access.serves(paths)
    with _listener(address) as listener:
        host, port = listener.getsockname()[:2]
        async with asyncio.TaskGroup() as tasks:
            accepting = tasks.create_task(access.accept(listener))
            try:
                where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                yield f"{access.scheme}://{where}"
            finally:
                accepting.cancel()
    await access.close(shutdown_s)


def _listener(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as exc:
        problem = f"cannot listen on {address[0]}:{address[1]}: {exc.strerror}"
        raise ConfigurationError(problem) from exc
    listener.settimeout(0)
    return listener
