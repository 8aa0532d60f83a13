"""The process that rebalances beside `reserver serve`, started and ended by it.

`python -m reserver.cli.rebalance_child FD`: FD is its end of the channel.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import structlog
import uvloop
from prometheus_client import generate_latest

from reserver import rebalancing
from reserver.cli import logs
from reserver.config import LogLevel
from reserver.errors import ReserverError
from reserver.kube.api import credentials
from reserver.rebalance.capacity import Held
from reserver.rebalance_config import RebalanceSettings
from reserver.server.descheduling import DeschedulingMetrics
from reserver.wire.rebalance.channel import MOST_BYTES, Answer, Orders, Told, line, read

log = structlog.get_logger(__name__)

_TELLING_S = 5.0
"""How often it tells its metrics, in seconds."""


class _Channel:
    """The way to the one that serves.

    Attributes:
        stopped: it wants this process to end.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stopped = asyncio.Event()
        self._reader, self._writer = reader, writer
        self._answers: asyncio.Queue[Held] = asyncio.Queue()

    async def listen(self) -> None:
        """Take answers. When the other end is closed, end at once: nobody leads here any more."""
        while written := await self._reader.readline():
            answer = read(Answer, written)
            if answer.held is not None:
                self._answers.put_nowait(answer.held)
            if answer.stops:
                self.stopped.set()
        os._exit(1)  # No eviction that is under way may be followed by another one.

    async def held(self) -> Held:
        """Return what reservations hold, by node."""
        self._writer.write(line(Told(asks_holds=True)))
        return await self._answers.get()

    async def tell(self, metrics: DeschedulingMetrics) -> None:
        """Tell the metrics again and again."""
        while True:
            self._writer.write(line(Told(metrics=generate_latest(metrics.registry).decode())))
            await self._writer.drain()
            await asyncio.sleep(_TELLING_S)


def settings_of(orders: Orders) -> RebalanceSettings:
    """Return the settings that orders ask for.

    The Lease keeps out a `reserver rebalance run` that runs elsewhere; it is short, because this
    process may be killed and begin anew.
    """
    return RebalanceSettings(
        policy_config_file=Path(orders.policy) if orders.policy else None,
        make_room=orders.make_room,
        descheduling_interval=orders.interval_s,
        compat=orders.compat,
        mode=orders.mode,
        dry_run=orders.dry_run,
        leader_elect=True,
        leader_elect_lease_duration=15.0,
        leader_elect_renew_deadline=10.0,
        leader_elect_retry_period=2.0,
        leader_elect_resource_namespace=orders.namespace,
    )


async def channel_end(number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return this process's end of the channel, from its file descriptor."""
    return await asyncio.open_connection(sock=socket.socket(fileno=number), limit=MOST_BYTES)


async def _run(number: int) -> None:
    reader, writer = await channel_end(number)
    orders = read(Orders, await reader.readline())
    logs.configure(LogLevel(orders.log_level))
    channel, metrics = _Channel(reader, writer), DeschedulingMetrics()
    listening = asyncio.create_task(channel.listen())
    telling = asyncio.create_task(channel.tell(metrics))
    access = await credentials.load(Path(orders.kubeconfig) if orders.kubeconfig else None)
    stop = channel.stopped.wait
    await rebalancing.rebalance(settings_of(orders), access, channel.held, _say, stop, metrics)
    telling.cancel()
    listening.cancel()


def _say(said: str) -> None:
    log.info("rebalancing", what=said)


def main() -> None:
    """Run until told to stop."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # They reach the one that serves, which tells.
    try:
        uvloop.run(_run(int(sys.argv[1])))
    except* ReserverError as group:
        log.error("what rebalances cannot go on", why="; ".join(map(str, group.exceptions)))
        sys.exit(1)


if __name__ == "__main__":
    main()
