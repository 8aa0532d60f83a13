"""The composition root: settings into adapters, adapters into one TaskGroup."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from uuid import uuid4

import structlog

from reserver.clock import SteadyClock
from reserver.config import Settings
from reserver.errors import LeadershipLost
from reserver.kube.api import credentials
from reserver.kube.api.client import ApiClient
from reserver.kube.api.reviewer import Reviewer
from reserver.kube.loops.lease import Lease
from reserver.kube.stores.stores import Stores
from reserver.kube.watch.history import History
from reserver.kube.watched import Watched
from reserver.pacer import Pacer
from reserver.reservations.reservation import Ref
from reserver.server.bindings import BIND_PATIENCE_S
from reserver.server.door import Door
from reserver.server.extender import Extender
from reserver.server.garbage import brief_collections
from reserver.server.gate import Hosts
from reserver.server.http import EXTENDER_LIMITS, HEALTH_LIMITS, Routes
from reserver.server.listen import listening
from reserver.server.metrics import Metrics
from reserver.server.rpc.access import Access
from reserver.server.rpc.listen import serving
from reserver.server.rpc.service import Service
from reserver.server.stalls import Stalls
from reserver.server.tls import ServerTls
from reserver.wiring import wire

log = structlog.get_logger(__name__)

LEASE = "reserver"
"""Name of the Lease, in the namespace of the labelled stores."""

_HISTORY_PATIENCE_S = 5.0
"""So long calls wait for the history to be read, in seconds: without it more is held."""

_REVIEWS = 16
"""Connections for tokens and rights: whoever sends tokens takes none from bindings."""

_SHUTDOWN_S = BIND_PATIENCE_S + 1


@dataclass(frozen=True, slots=True)
class Running:
    """A reserver that serves.

    Attributes:
        server: base URL of the API server.
        source: where the credentials come from.
        url: base URL of the extender.
        health_url: base URL of health and metrics, None where they have no address of their own.
        grpc_address: ``ADDRESS:PORT`` of the gRPC API, None where it is not served.
        watched: what is known of the watches and the store.
    """

    server: str
    source: str
    url: str
    health_url: str | None
    grpc_address: str | None
    watched: Watched


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Running]:
    """Run reserver until the block ends, then let calls in flight finish.

    Raises:
        ConfigurationError: the credentials or certificates cannot be used, or a port is taken.
    """
    access = await credentials.load(settings.kubeconfig)
    tls = ServerTls(settings.tls, settings.extender_allowed_names) if settings.tls else None
    clock = SteadyClock(time.time, time.monotonic)
    async with ApiClient(access) as client, ApiClient(access, _REVIEWS) as reviews:
        lease = _lease(settings, client) if settings.leader_elect else None
        async with asyncio.TaskGroup() as writes:
            told: list[Callable[[Ref], None]] = []
            watched, apply, history = wire(settings, client, clock, lease, told, writes)
            metrics = Metrics(watched)
            tell = watched.recorder.tell
            extender = Extender(
                watched.state, apply, watched.requeue, clock, watched, writes, told=tell
            )
            service = None
            if settings.grpc_address is not None:
                service = _service(settings, reviews, watched, extender, metrics)
                told.append(service.touched)
            routes = Routes(extender, metrics, watched.obstacles)
            async with asyncio.TaskGroup() as tasks:
                background = (
                    tasks.create_task(access.renew()),
                    tasks.create_task(_lead(watched, history)),
                    tasks.create_task(watched.beat()),
                )
                try:
                    async with AsyncExitStack() as stack:
                        stack.enter_context(Stalls(metrics.held).watching())
                        stack.enter_context(brief_collections())
                        url = await _serve_extender(settings, routes, metrics, tls, stack)
                        health = await _serve_health(settings, routes, metrics, stack)
                        rpc = await _serve_grpc(settings, service, watched, stack)
                        yield Running(access.server, access.source, url, health, rpc, watched)
                    await extender.bindings.drain()
                finally:
                    for task in background:
                        task.cancel()
        if lease is not None:
            await lease.release()


async def _serve_extender(
    settings: Settings,
    routes: Routes,
    metrics: Metrics,
    tls: ServerTls | None,
    stack: AsyncExitStack,
) -> str:
    address = (settings.bind_address, settings.http_port)
    hosts = Hosts.of(settings.bind_address, settings.allowed_hosts)
    door = Door(EXTENDER_LIMITS, hosts, metrics.count_refused, tls)
    site = listening(routes.application(), address, _SHUTDOWN_S, door)
    return await stack.enter_async_context(site)


async def _serve_health(
    settings: Settings, routes: Routes, metrics: Metrics, stack: AsyncExitStack
) -> str | None:
    if settings.health_address is None:
        return None
    hosts = Hosts.of(settings.health_address[0], settings.allowed_hosts)
    door = Door(HEALTH_LIMITS, hosts, metrics.count_refused)
    site = listening(routes.health_application(), settings.health_address, _SHUTDOWN_S, door)
    return await stack.enter_async_context(site)


async def _serve_grpc(
    settings: Settings, service: Service | None, watched: Watched, stack: AsyncExitStack
) -> str | None:
    if settings.grpc_address is None or service is None:
        return None
    tls = settings.grpc_tls
    site = serving(settings.grpc_address, service, watched.obstacles, _SHUTDOWN_S, tls)
    return await stack.enter_async_context(site)


def _service(
    settings: Settings,
    reviews: ApiClient,
    watched: Watched,
    extender: Extender,
    metrics: Metrics,
) -> Service:
    access = None
    if settings.wants_grpc_tokens:
        asked = settings.namespace, time.monotonic, settings.grpc_audiences
        access = Access(Reviewer(reviews, *asked))
    return Service(
        state=watched.state,
        stores=watched.stores,
        extender=extender,
        namespace=settings.namespace,
        clock=watched.clock,
        access=access,
        obstacles=watched.obstacles,
        counted=metrics,
    )


def _lease(settings: Settings, client: ApiClient) -> Lease:
    identity = f"{socket.gethostname()}_{uuid4()}"
    return Lease(client, settings.namespace, LEASE, identity, time.time, _elapsed)


def _elapsed() -> float:
    """Return seconds that no jump of the clock disturbs and, on Linux, no suspension stops."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


async def _lead(watched: Watched, history: History) -> None:
    """Watch the cluster and decide; with a lease, only once it is held.

    Watching begins only then, so that what is listed includes every binding of whoever led before.
    """
    if watched.lease is not None:
        await watched.lease.acquire()
    async with asyncio.TaskGroup() as tasks:
        if watched.lease is not None:
            tasks.create_task(_keep(watched.lease))
        tasks.create_task(watched.recorder.run())
        tasks.create_task(watched.waker.run(watched.state))
        tasks.create_task(watched.requeue.run())
        tasks.create_task(_complete(watched, history))
        for reflector in watched.reflectors:
            tasks.create_task(reflector.run())


async def _keep(lease: Lease) -> None:
    try:
        await lease.keep()
    except LeadershipLost as exc:
        log.error("leadership lost, ending at once", why=str(exc))
        os._exit(1)  # Nothing that is under way may be written any more.


async def _complete(watched: Watched, history: History) -> None:
    """Tidy and acknowledge once all is listed, and decide once the history is read, too."""
    for reflector in watched.reflectors:
        await reflector.synced.wait()
    stores = watched.stores
    quotas, quota_writer = watched.quotas
    with suppress(TimeoutError):
        async with asyncio.timeout(_HISTORY_PATIENCE_S):
            for store in stores:
                await store.statuses.recall(watched.state.ledger)
    await Pacer().run(watched.state.ledger.open())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(quota_writer.admit(watched.state.ledger))
        tasks.create_task(quota_writer.run(quotas))
        tasks.create_task(watched.cleaner.run(stores))
        for store in stores:
            tasks.create_task(store.statuses.run(watched.state))
        reading = tasks.create_task(_read(history, stores))
        await asyncio.wait((reading,), timeout=_HISTORY_PATIENCE_S)
        for set_id in chain.from_iterable(store.cache.abandon_unfinished() for store in stores):
            log.warning("a set was not finished by who wrote it, and is taken back", set=set_id)
        watched.state.is_complete = True
        log.info(
            "ready",
            nodes=watched.state.snapshot.node_count,
            pods=len(watched.state.pods),
            reservations=len(watched.state.ledger),
        )
        tasks.create_task(watched.placer.run(watched.state))


async def _read(history: History, stores: Stores) -> None:
    for store in stores:  # It may take the history to tell what was said before the start.
        await store.statuses.recalled()
    await history.read()
