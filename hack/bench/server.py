"""A server in its own process: Reserver's routes on an artificial cluster, or the floor.

It prints its port once it listens, and stops when its standard input ends, with its parent.
"""

import argparse
import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools
import uvloop
from aiohttp import web

from hack.bench.documents import encode, new_pod, running_pod, running_pods
from hack.bench.world import REFUSED_REQUESTS, Size, owner_name, state
from hack.programs import started
from reserver.base.gc_tuning import brief_collections
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.server import EXTENDER_LIMITS, MAX_BODY_BYTES, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import Handler, HttpRequest, HttpResponse
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.process import logs
from reserver.reservations.ledger import Ledger
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect
from reserver.settings.serve import LogLevel

FLOOR = "floor"
BARE = "bare"
RESERVER = "reserver"
BUSY = "busy"
"""Reserver while its watch shows 500 pod events a second."""

CHANGE = "/change"
"""The path of a call that changes a node, as the binding of a pod does."""

_EVERY_S = 0.002
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def serving(kind: str, size: Size | None = None) -> Iterator["Server"]:
    """Start a server of a kind, and stop it when the block ends."""
    sizes = (size.nodes, size.pods, size.reservations) if size else (0, 0, 0)
    command = [sys.executable, "-m", "hack.bench.server", kind, *map(str, sizes)]
    pipe = subprocess.PIPE
    with started(*command, grace_s=30, stdin=pipe, stdout=pipe, text=True) as process:
        yield Server(process)


class Server:
    """A started server; it may still be building its cluster."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def port(self, processors: Collection[int] = ()) -> int:
        """Wait until it listens, pin it to some processors from then on, and return its port.

        Raises:
            RuntimeError: it has ended; standard error has the reason.
        """
        if self._process.stdout is None or not (line := self._process.stdout.readline()):
            raise RuntimeError("the server did not start")
        if processors:
            os.sched_setaffinity(self._process.pid, processors)
        return int(line)


@dataclass(frozen=True, slots=True)
class UpToDate:
    """The readiness of a Reserver whose watches are never behind."""

    state: State
    is_ready: bool = True
    expiring: int = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger of reservations."""
        return self.state.ledger

    def obstacles(self) -> tuple[str, ...]:
        """Return the obstacles to decisions: none."""
        return ()

    async def caught_up(self) -> None:
        """Return at once."""

    async def agrees(self) -> bool:
        """Return True without asking etcd."""
        return True


class NoCluster:
    """An API server that does nothing."""

    async def read_pod(self, name: PodName) -> Pod:
        """Raise, as there is no pod."""
        raise ApiError(404, "NotFound", f"there is no pod {name}")

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Return without a write."""

    def send_sparingly(self, effect: Effect) -> None:
        """Return without a write."""

    def judged(self, pod_uid: str) -> None:
        """Ignore the pod."""


def _floor_application() -> web.Application:
    """Answer /floor/N with N bytes, after reading the body."""

    async def floor(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(
            body=bytes(int(request.match_info["bytes"])), content_type="application/json"
        )

    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.add_routes([web.post("/floor/{bytes}", floor)])
    return app


class _Bare(asyncio.Protocol):
    """Answers /floor/N with N bytes, over httptools alone."""

    def __init__(self) -> None:
        self._target = b""
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, target: bytes) -> None:
        self._target = target

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""

    def on_message_complete(self) -> None:
        size = int(self._target.rpartition(b"/")[2])
        self._wire.write(_HEAD % size + bytes(size))


async def _show_events(shown: State) -> None:
    """Process changed pods, one after the other, as a watch does; each changes its node."""
    pods = itertools.chain(running_pods(2_000, 100), running_pods(2_000, 99))
    for raw in itertools.cycle(pods):
        shown.pod_seen(decode(PodObject, raw).value())
        await asyncio.sleep(_EVERY_S)


def _changing(cluster: State) -> Handler:
    """Return a handler that changes a node at each call: it adds a pod, or removes it again."""
    bound = decode(PodObject, encode(running_pod(0, 1))).value()
    nodes = itertools.cycle(cluster.snapshot.node_names())

    def change(_: HttpRequest) -> HttpResponse:
        if cluster.snapshot.counted(bound.uid):
            cluster.snapshot.uncount(bound.uid)
        else:
            cluster.snapshot.count(bound, next(nodes))
        return HttpResponse(b"{}")

    return change


async def _serve(kind: str, size: Size) -> None:
    async with asyncio.TaskGroup() as tasks, _listening(kind, size, tasks) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def _listening(kind: str, size: Size, tasks: asyncio.TaskGroup) -> AsyncIterator[int | None]:
    """Serve as Reserver does, or the floor with aiohttp without limits; yield the port."""
    if kind == FLOOR:
        runner = web.AppRunner(_floor_application(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield site.port
        await runner.cleanup()
        return
    if kind == BARE:
        bare = await asyncio.get_running_loop().create_server(_Bare, "127.0.0.1", 0)
        yield bare.sockets[0].getsockname()[1]
        bare.close()
        return
    cluster, nothing = state(size), NoCluster()
    for pod in (new_pod("web-1"), new_pod("large-1", REFUSED_REQUESTS), new_pod(owner_name(0))):
        cluster.pod_seen(decode(PodObject, encode(pod)).value())  # As the watch shows pending pods.
    up_to_date = UpToDate(cluster)
    metrics = Metrics(up_to_date, tuple)
    extender = Extender(
        cluster, nothing, nothing, time.time, up_to_date, tasks, on_event=lambda _: None
    )
    paths = Routes(extender, metrics, up_to_date.obstacles).paths()
    paths = {**paths, CHANGE: ("GET", _changing(cluster))}
    door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), metrics.count_refused)
    events = tasks.create_task(_show_events(cluster)) if kind == BUSY else None
    with brief_collections():
        async with listening(paths, ("127.0.0.1", 0), 1.0, door) as url:
            yield urlsplit(url).port
    if events is not None:
        events.cancel()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=(RESERVER, BUSY, FLOOR, BARE))
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    parser.add_argument("reservations", type=int)
    args = parser.parse_args()
    logs.configure(LogLevel.INFO)
    size = Size(nodes=args.nodes, pods=args.pods, reservations=args.reservations)
    uvloop.run(_serve(args.kind, size))


if __name__ == "__main__":
    _main()
