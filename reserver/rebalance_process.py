"""The process that rebalances, beside one that serves (docs/adr/0037).

Planning takes seconds, a Filter call a millisecond; in one interpreter the calls would wait.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import structlog

from reserver.backoff import Backoff
from reserver.rebalance.capacity import Held
from reserver.wire.rebalance.channel import (
    MOST_BYTES,
    Answer,
    Orders,
    Told,
    line,
    read,
)

log = structlog.get_logger(__name__)

_FIRST_S, _LAST_S = 1.0, 300.0
_STEADY_S = 600.0
"""Who has run for so long had no part in an earlier failure, in seconds."""

_ENDING_S = 5.0
"""How long it may take to give its Lease back, in seconds."""


class RebalanceProcess:
    """Runs `reserver.cli.rebalance_child`, and runs it again if it ends.

    Attributes:
        ended: how often it has ended by itself.
    """

    def __init__(self, orders: Orders, held: Callable[[], Held]) -> None:
        """Run by these orders; `held` returns what reservations hold, by node."""
        self._metrics = b""
        self.ended = 0
        self._orders, self._held = orders, held

    def exposed(self) -> bytes:
        """Return its metrics, as Prometheus reads them; empty while it does not run."""
        return self._metrics

    async def run(self) -> None:
        """Run it until cancelled."""
        backoff = Backoff(_FIRST_S, _LAST_S)
        while True:
            began = time.monotonic()
            status = await self._once()
            self.ended += 1
            if time.monotonic() - began > _STEADY_S:
                backoff.succeeded()
            pause_s = backoff.failed()
            log.error("what rebalances has ended", status=status, again_in_s=round(pause_s, 1))
            await asyncio.sleep(pause_s)

    async def _once(self) -> int:
        """Run it once; return its exit status."""
        process, reader, writer = await _started("reserver.cli.rebalance_child")
        try:
            writer.write(line(self._orders))
            await self._answer(reader, writer)
            return await process.wait()
        finally:
            self._metrics = b""
            if process.returncode is None:
                await _end(process, writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what it asks until it ends."""
        while written := await reader.readline():
            told = read(Told, written)
            if told.metrics:
                self._metrics = told.metrics.encode()
            if told.asks_holds:
                writer.write(line(Answer(held=self._held())))
                await writer.drain()


async def _started(
    module: str,
) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader, asyncio.StreamWriter]:
    """Run a module in a process; return it with our end of a channel to it."""
    ours, theirs = socket.socketpair()
    with ExitStack() as unfinished:
        unfinished.callback(ours.close)
        with theirs:
            number = theirs.fileno()
            command = (sys.executable, "-m", module, str(number))
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(number,),
                start_new_session=True,  # A Ctrl-C is for who serves; the channel ends this one.
            )
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=MOST_BYTES)
        except asyncio.CancelledError:  # Nobody else knows of it yet.
            process.kill()
            await process.wait()
            raise
        unfinished.pop_all()
    return process, reader, writer


async def _end(process: asyncio.subprocess.Process, writer: asyncio.StreamWriter) -> None:
    """Let it give its Lease back, or kill it if that takes too long."""
    writer.write(line(Answer(stops=True)))
    try:
        async with asyncio.timeout(_ENDING_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
