"""A flood of connections, heads and bodies at the doors of a Reserver in a process of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import TraceConfig

from hack.reserver_process import ReserverProcess
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.doors.wire import call, wire

ATTACKER = "127.0.0.2"
AT_ONCE = 100
CALLS = 100
JSON = "Content-Type: application/json"
HALF_A_HEAD = b"POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
FILTER_OF_8_MIB = call("POST /filter HTTP/1.1", JSON, f"Content-Length: {8 * 2**20}")

END = "Connection: close"


class Attack(NamedTuple):
    """The data that one connection sends in pieces, before another connection replaces it.

    Attributes:
        pieces: the pieces of data.
        stays: whether it stays open until the listener closes it; else it closes at once.
    """

    pieces: tuple[bytes, ...]
    stays: bool = True


FLOOD = (
    Attack(()),
    Attack((HALF_A_HEAD,)),
    Attack((HALF_A_HEAD, *[b"a" * 65_536] * 16)),
    Attack((call("POST /filter HTTP/1.1", *(f"X-{n}: {'a' * 4000}" for n in range(100))),)),
    Attack((FILTER_OF_8_MIB, *[b"[" * 65_536] * 8), stays=False),
    Attack((call("POST /filter HTTP/1.1", JSON, END, body=b'{"Pod":' + b"[" * 2**20),)),
    Attack((call("POST /filter HTTP/1.1", JSON, f"Content-Length: {2**40}"), b"a" * 2**20)),
    Attack((call("POST /bind HTTP/1.1", JSON, END, body=b"{}"),)),
    Attack((call("GET /readyz HTTP/1.1"),) * 100, stays=False),
)


class Flood:
    """Connections of one peer, as many at once as it can keep.

    Attributes:
        connections: how many there were.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._which = itertools.cycle(FLOOD)
        self.connections = 0

    async def go_on(self) -> None:
        """Open one connection after the other, and talk until the listener has enough."""
        while True:
            attack = next(self._which)
            try:
                async with wire(self._url, ATTACKER) as connection:
                    self.connections += 1
                    for piece in attack.pieces:
                        connection.say(piece)
                        await asyncio.sleep(0)
                    if attack.stays:
                        await connection.all_answers()
            except (OSError, RuntimeError):  # The latter uvloop says of what has ended.
                await asyncio.sleep(0)


@asynccontextmanager
async def flooded(flood: Flood) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(flood.go_on()) for _ in range(AT_ONCE)]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_filter_calls_are_all_answered_while_one_peer_floods_the_doors(
    tmp_path: Path,
) -> None:
    opened: list[int] = []
    trace = TraceConfig()

    async def note(*_: Any) -> None:
        opened.append(1)

    trace.on_connection_create_end.append(note)
    async with EmbeddedCluster() as cluster:
        for number in range(10):
            await cluster.create_node(f"worker-{number}")
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        process = ReserverProcess(tmp_path / "kubeconfig", tmp_path / "log", "--log-level=info")
        await asyncio.to_thread(process.start)
        try:
            async with aiohttp.ClientSession(trace_configs=[trace]) as kube_scheduler:
                expected = await ask(kube_scheduler, process.url)
                assert len(expected["NodeNames"]) == 10
                flood = Flood(process.url)
                async with flooded(flood):
                    for _ in range(CALLS):
                        assert await ask(kube_scheduler, process.url) == expected
                    while flood.connections < 4 * AT_ONCE:
                        assert await ask(kube_scheduler, process.url) == expected
            assert len(opened) == 1  # Its connection was not pushed out.
            assert await asyncio.to_thread(process.is_ready)
        finally:
            status, _ = await asyncio.to_thread(process.stop)
    assert status == 0


async def ask(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    pod = {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    names = [f"worker-{number}" for number in range(10)]
    body = {"Pod": pod, "NodeNames": names}
    async with session.post(f"{url}/filter", json=body) as answer:
        assert answer.status == 200
        said: dict[str, Any] = json.loads(await answer.read())
        return said
