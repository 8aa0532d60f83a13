"""The composition root: builds everything from the settings, and runs it in one TaskGroup."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from prometheus_client.core import Metric

from reserver.base.clock import SteadyClock, elapsed
from reserver.base.gc_tuning import brief_collections
from reserver.base.loop_watchdog import LoopWatchdog
from reserver.errors import ConfigurationError
from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.server import Routes
from reserver.http.tls import Expiries
from reserver.k8s import credentials, http_client
from reserver.k8s.client import ApiClient
from reserver.k8s.http_client import RequestCounts
from reserver.process.assembly import Assembly
from reserver.process.background import WriteTasks, lead, stand_by
from reserver.process.http_listeners import SHUTDOWN_S, HttpListeners
from reserver.process.leadership import label_of, lease_of
from reserver.process.metrics import measured, memory_measured
from reserver.process.reload import Reload, Restart
from reserver.settings.serve import Settings
from reserver.stores.object.codec import COLLECTION

if TYPE_CHECKING:
    from reserver.grpc.service import Service
    from reserver.moves.index import KnownMove
    from reserver.moves.model import Move
    from reserver.process.tracing import Tracing
    from reserver.process.webhooks import Prepared

log = structlog.get_logger(__name__)

_REVIEWS = 16
"""Connections for tokens and rights, apart from those for bindings."""


@dataclass(frozen=True, slots=True)
class Running:
    """A reserver that serves.

    Attributes:
        server: base URL of the API server.
        source: where the credentials come from.
        url: base URL of the extender.
        health_url: base URL of health and metrics, None where they have no address of their own.
        metrics_url: base URL of metrics over TLS, None where they are not served so.
        grpc_address: ``ADDRESS:PORT`` of the gRPC API, None where it is not served.
        webhook_url: base URL of the webhooks, None where they are not served.
        assembly: what watches, decides and writes.
        restart: set when the process has to end, so that another start reads the configuration.
    """

    server: str
    source: str
    url: str
    health_url: str | None
    metrics_url: str | None
    grpc_address: str | None
    webhook_url: str | None
    assembly: Assembly
    restart: asyncio.Event


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Running]:
    """Run reserver until the block ends, then let calls in flight finish.

    Raises:
        ConfigurationError: the credentials or certificates cannot be used, a port is taken, or the
            API server knows no CapacityBuffers.
    """
    access = await credentials.load(settings.kubeconfig)
    clock = SteadyClock(time.time, elapsed)
    async with ApiClient(access) as client, ApiClient(access, _REVIEWS) as reviews:
        await _require_crds(client, settings)
        lease, label = lease_of(settings, client), label_of(settings, client)
        async with WriteTasks() as writes:
            assembly = Assembly(settings, client, clock, writes, lease)
            expiries = Expiries(settings.all_tls)
            reload = Reload(settings, assembly)
            restart = Restart(reload, client, lease, partial(_startable, client))
            requests = (client.request_counts, reviews.request_counts)
            families = partial(_families, assembly, expiries, reload, requests)
            metrics = Metrics(assembly, families, assembly.measured.survey)
            if assembly.features.mover is not None:
                assembly.features.mover.subscribers.append(
                    partial(_report_move, partial(_count_move, metrics))
                )
            tracing = _tracing() if settings.tracing else None
            extender = _extender(assembly, writes, tracing)
            service = _service(settings, reviews, assembly, extender, metrics)
            follow = [*((service.feed.run,) if service else ()), *((label.keep,) if label else ())]
            if tracing is not None:
                _trace(tracing, assembly, service)
            ready = assembly.readiness
            looks = (ready.obstacles, ready.checks, ready.inability)
            routes = Routes(extender, metrics, *looks)
            waiting = partial(stand_by, assembly, client, label)
            webhooks = _webhooks(settings, assembly, client, metrics, expiries)
            follow += webhooks.loops if webhooks else ()
            async with asyncio.TaskGroup() as tasks:
                background = (
                    tasks.create_task(access.renew()),
                    tasks.create_task(lead(assembly, *follow, standing_by=waiting)),
                    tasks.create_task(assembly.readiness.beat()),
                    tasks.create_task(reload.run()),
                    tasks.create_task(restart.run()),
                )
                try:
                    async with AsyncExitStack() as stack:
                        stack.enter_context(LoopWatchdog(metrics.blocked).watching())
                        stack.enter_context(brief_collections())
                        listeners = HttpListeners(reload, routes, metrics, reviews, expiries)
                        web = await listeners.serve(stack)
                        rpc = await _serve_grpc(settings, service, assembly, stack)
                        hooks = await webhooks.serve(stack) if webhooks else None
                        addresses = (access.server, access.source, *web, rpc, hooks)
                        yield Running(*addresses, assembly, restart.due)
                    await extender.bindings.drain()
                    if webhooks:
                        await webhooks.release()
                finally:
                    for task in background:
                        task.cancel()
                    if tracing is not None:
                        await tracing.end()
        if lease is not None:
            await lease.release()


async def _require_crds(client: ApiClient, settings: Settings) -> None:
    """Raise ConfigurationError if CRDs are missing that features need."""
    if settings.provisioning_requests:
        from reserver.provisioning.setup import require_crd  # noqa: PLC0415 - few ask for it

        await require_crd(client)
    if settings.capacity_buffers:
        from reserver.autoscaling.buffer_writer import check_served  # noqa: PLC0415 - as above

        await check_served(client)


async def _startable(client: ApiClient, settings: Settings) -> None:
    """Raise if a start with settings would fail, or never become ready."""
    await _require_crds(client, settings)
    needed = [COLLECTION] if settings.needs_crd else []
    if settings.pod_moves:
        from reserver.moves.podmove import COLLECTION as MOVES  # noqa: PLC0415 - as above

        needed.append(MOVES)
    if settings.maintenance_windows:
        from reserver.maintenance.codec import COLLECTION as WINDOWS  # noqa: PLC0415 - as above

        needed.append(WINDOWS)
    for path in needed:
        await client.get(path, {"limit": "1"})


def _families(
    assembly: Assembly, expiries: Expiries, reload: Reload, requests: Iterable[RequestCounts]
) -> Iterator[Metric]:
    yield from measured(assembly)
    yield from expiries.measured()
    yield from reload.measured()
    yield from http_client.measured(requests)
    yield from memory_measured()


def _report_move(report: Callable[[Move], None], known: KnownMove) -> None:
    if known.move is not None:
        report(known.move)


def _count_move(metrics: Metrics, move: Move) -> None:
    status = move.status
    metrics.count_move(status.phase, status.reason or "")
    if status.replacement.uid and status.evicted_at and status.finished_at:
        metrics.count_landing(move.spec.mode, status.finished_at - status.evicted_at)


def _service(
    settings: Settings,
    reviews: ApiClient,
    assembly: Assembly,
    extender: Extender,
    metrics: Metrics,
) -> Service | None:
    if settings.grpc_address is None:
        return None
    from reserver.process import grpc_api  # noqa: PLC0415 - a tenth of a start, if it is asked for

    return grpc_api.prepare(settings, reviews, assembly, extender, metrics)


async def _serve_grpc(
    settings: Settings, service: Service | None, assembly: Assembly, stack: AsyncExitStack
) -> str | None:
    if settings.grpc_address is None or service is None:
        return None
    from reserver.grpc.service import serving  # noqa: PLC0415 - as in `_service`

    tls = settings.grpc_tls
    site = serving(settings.grpc_address, service, assembly.readiness.obstacles, SHUTDOWN_S, tls)
    return await stack.enter_async_context(site)


def _webhooks(
    settings: Settings,
    assembly: Assembly,
    client: ApiClient,
    metrics: Metrics,
    expiries: Expiries,
) -> Prepared | None:
    if settings.webhook_address is None:
        return None
    from reserver.process.webhooks import prepare  # noqa: PLC0415 - with what makes certificates

    return prepare(settings, assembly, client, metrics, expiries)


def _tracing() -> Tracing:
    try:
        from reserver.process.tracing import Tracing  # noqa: PLC0415 - it needs packages of an extra
    except ModuleNotFoundError as exc:
        problem = f"--tracing needs the package {exc.name}: pip install './WHEEL[tracing]'"
        raise ConfigurationError(problem) from exc
    return Tracing()


def _trace(tracing: Tracing, assembly: Assembly, service: Service | None) -> None:
    """Have moves and gRPC calls traced."""
    if assembly.features.mover is not None:
        assembly.features.mover.subscribers.append(partial(_report_move, tracing.move))
    if service is not None:
        service.interceptors.insert(0, tracing.calls())


def _extender(assembly: Assembly, writes: asyncio.TaskGroup, tracing: Tracing | None) -> Extender:
    made = Extender if tracing is None else tracing.extender
    return made(
        assembly.state,
        assembly.pod_writes,
        assembly.requeue,
        assembly.clock,
        assembly.readiness,
        writes,
        on_event=assembly.recorder.record,
    )
