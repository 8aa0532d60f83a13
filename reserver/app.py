"""The composition root: builds everything from the settings, and runs it in one TaskGroup."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
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
from reserver.k8s.credentials import Credentials
from reserver.k8s.lease import Lease
from reserver.process import servers
from reserver.process.assembly import Assembly
from reserver.process.background import WriteTasks, lead, stand_by
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

log = structlog.get_logger(__name__)

_REVIEWS = 16
"""Connections for tokens and rights, apart from those for bindings."""


@dataclass(frozen=True, slots=True)
class Running:
    """A reserver that serves.

    Attributes:
        server: base URL of the API server.
        source: the origin of the credentials.
        url: base URL of the extender.
        health_url: base URL of health and metrics, None without an address of their own.
        metrics_url: base URL of metrics over TLS, None if metrics are not served so.
        grpc_address: ``ADDRESS:PORT`` of the gRPC API, None if it is not served.
        webhook_url: base URL of the webhooks, None if they are not served.
        assembly: the caches, decisions and writers.
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
            API server does not serve CapacityBuffers.
    """
    access = await credentials.load(settings.kubeconfig)
    async with ApiClient(access) as client, ApiClient(access, _REVIEWS) as reviews:
        await _require_crds(client, settings)
        lease = lease_of(settings, client)
        async with WriteTasks() as writes:
            process = _Process(settings, client, reviews, writes, lease)
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(each) for each in (access.renew(), *process.loops())
                ]
                try:
                    async with process.serving(access) as serving:
                        yield serving
                    await process.drain()
                finally:
                    for task in background:
                        task.cancel()
                    if process.tracing is not None:
                        await process.tracing.end()
        if lease is not None:
            await lease.release()


class _Process:
    """The parts of one process, with its start and its end."""

    def __init__(
        self,
        settings: Settings,
        client: ApiClient,
        reviews: ApiClient,
        writes: asyncio.TaskGroup,
        lease: Lease | None,
    ) -> None:
        clock = SteadyClock(time.time, elapsed)
        self.settings, self.client, self.reviews = settings, client, reviews
        self.assembly = Assembly(settings, client, clock, writes, lease)
        self.expiries = Expiries(settings.all_tls)
        self.reload = Reload(settings, self.assembly)
        self.restart = Restart(self.reload, client, lease, partial(_startable, client))
        self.metrics = Metrics(self.assembly, self._families, self.assembly.measured.survey)
        self.tracing = _tracing() if settings.tracing else None
        self.extender = self._extender(writes)
        self.service = self._service()
        self._follow_moves()
        parts = (self.assembly, client, self.metrics, self.expiries)
        self.webhooks = servers.webhooks(settings, *parts)

    def loops(self) -> Iterator[Coroutine[None, None, None]]:
        """Yield the background tasks."""
        label = label_of(self.settings, self.client)
        follow = [
            *((self.service.feed.run,) if self.service else ()),
            *((label.keep,) if label else ()),
            *(self.webhooks.loops if self.webhooks else ()),
        ]
        waiting = partial(stand_by, self.assembly, self.client, label)
        yield lead(self.assembly, self.client, *follow, standing_by=waiting)
        yield self.assembly.readiness.beat()
        yield self.reload.run()
        yield self.restart.run()

    @asynccontextmanager
    async def serving(self, access: Credentials) -> AsyncIterator[Running]:
        """Serve until the block ends; `access` has the credentials for the API server."""
        ready = self.assembly.readiness
        looks = (ready.obstacles, ready.checks, ready.inability)
        routes = Routes(self.extender, self.metrics, *looks)
        async with AsyncExitStack() as stack:
            stack.enter_context(LoopWatchdog(self.metrics.blocked).watching())
            stack.enter_context(brief_collections())
            parts = (self.reload, routes, self.metrics, self.reviews, self.expiries)
            web = await servers.HttpListeners(*parts).serve(stack)
            rpc = await self._serve_grpc(stack)
            site = self.webhooks.listener if self.webhooks else None
            hooks = await stack.enter_async_context(site) if site else None
            addresses = (access.server, access.source, *web, rpc, hooks)
            yield Running(*addresses, self.assembly, self.restart.due)

    async def drain(self) -> None:
        """Finish the bindings under way, and release unused SchedPatch slots for a successor."""
        await self.extender.bindings.drain()
        if self.webhooks:
            await self.webhooks.release()

    def _families(self) -> Iterator[Metric]:
        yield from measured(self.assembly)
        yield from self.expiries.measured()
        yield from self.reload.measured()
        yield from http_client.measured((self.client.request_counts, self.reviews.request_counts))
        yield from memory_measured()

    def _extender(self, writes: asyncio.TaskGroup) -> Extender:
        made = Extender if self.tracing is None else self.tracing.extender
        return made(
            self.assembly.state,
            self.assembly.pod_writes,
            self.assembly.requeue,
            self.assembly.clock,
            self.assembly.readiness,
            writes,
            on_event=self.assembly.recorder.record,
        )

    def _service(self) -> Service | None:
        if self.settings.grpc_address is None:
            return None
        parts = (self.reviews, self.assembly, self.extender, self.metrics)
        service = servers.grpc_service(self.settings, *parts)
        if self.tracing is not None:
            service.interceptors.insert(0, self.tracing.calls())
        return service

    async def _serve_grpc(self, stack: AsyncExitStack) -> str | None:
        settings = self.settings
        if settings.grpc_address is None or self.service is None:
            return None
        from reserver.grpc.service import serving  # noqa: PLC0415 - takes a tenth of a start

        ends = (self.assembly.readiness.obstacles, servers.SHUTDOWN_S, settings.grpc_tls)
        site = serving(settings.grpc_address, self.service, *ends)
        return await stack.enter_async_context(site)

    def _follow_moves(self) -> None:
        """Count and trace moves."""
        if (mover := self.assembly.features.mover) is None:
            return
        mover.subscribers.append(partial(_report_move, partial(_count_move, self.metrics)))
        if self.tracing is not None:
            mover.subscribers.append(partial(_report_move, self.tracing.move))


async def _require_crds(client: ApiClient, settings: Settings) -> None:
    """Raise ConfigurationError if the CRD of an enabled feature is missing."""
    if settings.provisioning_requests:
        from reserver.provisioning.setup import require_crd  # noqa: PLC0415 - rarely enabled

        await require_crd(client)
    if settings.capacity_buffers:
        from reserver.autoscaling.buffer_writer import check_served  # noqa: PLC0415 - as above

        await check_served(client)


async def _startable(client: ApiClient, settings: Settings) -> None:
    """Raise if a start with these settings would fail, or never become ready."""
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


def _report_move(report: Callable[[Move], None], known: KnownMove) -> None:
    if known.move is not None:
        report(known.move)


def _count_move(metrics: Metrics, move: Move) -> None:
    status = move.status
    metrics.count_move(status.phase, status.reason or "")
    if status.replacement.uid and status.evicted_at and status.finished_at:
        metrics.count_landing(move.spec.mode, status.finished_at - status.evicted_at)


def _tracing() -> Tracing:
    try:
        from reserver.process.tracing import Tracing  # noqa: PLC0415 - needs packages of an extra
    except ModuleNotFoundError as exc:
        problem = f"--tracing needs the package {exc.name}: pip install './WHEEL[tracing]'"
        raise ConfigurationError(problem) from exc
    return Tracing()
