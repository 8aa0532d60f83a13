"""The composition root: settings into adapters, adapters into one TaskGroup."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import eq

import structlog
from aiohttp import web

from reserver.clock import SteadyClock
from reserver.config import Settings
from reserver.errors import ConfigurationError
from reserver.kube import credentials
from reserver.kube.apply import Apply
from reserver.kube.cleaner import Cleaner
from reserver.kube.client import ApiClient
from reserver.kube.events import Recorder
from reserver.kube.reflector import STALE_AFTER_S, Reflector
from reserver.kube.status import StatusWriter
from reserver.kube.store import LABEL, NO_COMPANION, Name, Store
from reserver.kube.views import node_view, pod_view, store_view
from reserver.kube.waker import Waker
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.server.extender import BIND_PATIENCE_S, Extender
from reserver.server.http import Routes
from reserver.server.metrics import Metrics

log = structlog.get_logger(__name__)

_SHUTDOWN_S = BIND_PATIENCE_S + 1


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of the watches and the store."""

    state: State
    store: Store
    recorder: Recorder
    cleaner: Cleaner
    waker: Waker
    statuses: StatusWriter
    reflectors: tuple[Reflector, ...]
    clock: SteadyClock

    @property
    def ledger(self) -> Ledger:
        """The ledger of reservations, at this moment."""
        self.state.ledger.advance(self.clock())
        return self.state.ledger

    @property
    def is_ready(self) -> bool:
        """Whether calls are decided."""
        return not self.obstacles()

    async def caught_up(self) -> None:
        """Wait until no watch is known to be broken, but not for longer than is excused."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STALE_AFTER_S):
                for reflector in self.reflectors:
                    await reflector.current.wait()

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps the state from being good enough to decide on."""
        obstacles = tuple(filter(None, (reflector.obstacle() for reflector in self.reflectors)))
        if not obstacles and not self.state.is_complete:
            return ("all is listed, starting to decide",)
        return obstacles

    def invalid_entries(self) -> Iterable[tuple[str, int]]:
        """Yield each store ConfigMap with the number of entries not enforced."""
        return (("/".join(name), count) for name, count in self.store.problem_counts())

    def counters(self) -> Iterable[tuple[str, str, int]]:
        """Yield name, help text and value of what only grows."""
        yield (
            "reserver_lists",
            "Lists of a watched collection.",
            sum(reflector.lists for reflector in self.reflectors),
        )
        yield (
            "reserver_watches",
            "Watches begun, resumed ones included.",
            sum(reflector.watches for reflector in self.reflectors),
        )
        yield "reserver_problems", "Entries reported as not enforced.", self.recorder.reported
        yield "reserver_store_edits", "Edits that tidied the store.", self.cleaner.edits
        yield (
            "reserver_store_edits_lost",
            "Edits that were not made because somebody wrote the key in between.",
            self.cleaner.lost,
        )
        yield "reserver_status_writes", "Writes of what became of entries.", self.statuses.writes
        yield "reserver_woken_pods", "Waiting pods sent back to be tried.", self.waker.woken
        yield (
            "reserver_unreadable_objects",
            "Pods, nodes and ConfigMaps that were passed over because they could not be read.",
            sum(reflector.view.unreadable for reflector in self.reflectors),
        )


@dataclass(frozen=True, slots=True)
class Running:
    """A reserver that serves.

    Attributes:
        server: base URL of the API server.
        source: where the credentials come from.
        url: base URL of the extender.
        watched: what is known of the watches and the store.
    """

    server: str
    source: str
    url: str
    watched: Watched


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Running]:
    """Run reserver until the block ends, then let calls in flight finish.

    Raises:
        ConfigurationError: the credentials cannot be used, or the port is taken.
    """
    access = await credentials.load(settings.kubeconfig)
    clock = SteadyClock(time.time, time.monotonic)
    async with ApiClient(access) as client, asyncio.TaskGroup() as writes:
        watched, apply = _wire(settings, client, clock)
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(work)
                for work in (
                    access.renew(),
                    watched.recorder.run(),
                    watched.waker.run(watched.state),
                    _complete(watched),
                    *(reflector.run() for reflector in watched.reflectors),
                )
            ]
            extender = Extender(watched.state, apply, clock, watched, writes)
            routes = Routes(extender, Metrics(watched), watched.obstacles)
            try:
                async with _listening(settings, routes) as url:
                    yield Running(access.server, access.source, url, watched)
                await extender.drain()
            finally:
                for task in background:
                    task.cancel()


def _wire(settings: Settings, client: ApiClient, clock: SteadyClock) -> tuple[Watched, Apply]:
    apply = Apply(client, clock)
    waker = Waker(apply, clock)
    recorder = Recorder(client, clock)
    statuses = StatusWriter(client, recorder.warn, clock)
    cleaner = Cleaner(apply, clock)

    def touched(ref: Ref) -> None:
        statuses.touched(ref)
        cleaner.touched(ref)

    state = State(waker.freed, touched)
    store = Store(state.ledger, clock, recorder.report, touched)
    reflectors = (
        Reflector(client, "/api/v1/nodes", node_view(state)),
        Reflector(client, "/api/v1/pods", pod_view(state)),
        *_store_reflectors(settings, client, store),
    )
    return Watched(state, store, recorder, cleaner, waker, statuses, reflectors, clock), apply


def _store_reflectors(settings: Settings, client: ApiClient, store: Store) -> Iterable[Reflector]:
    """Yield one watch for all labelled ConfigMaps, and one for each that is named."""
    named = frozenset(settings.configmaps)

    def is_labelled(name: Name) -> bool:
        return name not in named and name[0] == settings.namespace

    path = f"/api/v1/namespaces/{settings.namespace}/configmaps"
    yield Reflector(client, path, store_view(store, is_labelled), {"labelSelector": LABEL})
    for own in sorted(named):
        path = f"/api/v1/namespaces/{own[0]}/configmaps"
        selector = {"fieldSelector": f"metadata.name={own[1]}", "labelSelector": NO_COMPANION}
        yield Reflector(client, path, store_view(store, partial(eq, own)), selector)


async def _complete(watched: Watched) -> None:
    """Mark the state complete once all is listed; from then on tidy and acknowledge."""
    for reflector in watched.reflectors:
        await reflector.synced.wait()
    watched.state.is_complete = True
    log.info(
        "ready",
        nodes=watched.state.snapshot.node_count,
        pods=len(watched.state.pods),
        reservations=len(watched.state.ledger),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watched.cleaner.run(watched.store))
        tasks.create_task(watched.statuses.run(watched.state, watched.store))


@asynccontextmanager
async def _listening(settings: Settings, routes: Routes) -> AsyncIterator[str]:
    runner = web.AppRunner(routes.application(), access_log=None, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.bind_address, settings.http_port)
        try:
            await site.start()
        except OSError as exc:
            address = f"{settings.bind_address}:{settings.http_port}"
            raise ConfigurationError(f"cannot listen on {address}: {exc.strerror}") from exc
        host, port = runner.addresses[0][:2]
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        await runner.cleanup()
