"""Assembles and serves the gRPC services, including health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.grpc.access import CallAccess
from reserver.grpc.capacity import CapacityServicer
from reserver.grpc.catalogue import Catalogue
from reserver.grpc.changes import Changes
from reserver.grpc.concurrency import MOST_CALLS
from reserver.grpc.creation import Creation
from reserver.grpc.feed import ReservationFeed
from reserver.grpc.interceptor import Calls
from reserver.grpc.port import Port
from reserver.grpc.reservations import Reservations
from reserver.grpc.scheduler import SchedulerServicer
from reserver.http.tls_files import TlsFiles
from reserver.scheduling.state import Readiness, State
from reserver.stores.archive_writer import ArchiveWriter
from reserver.stores.hold_accounts import AccountWriter
from reserver.stores.stores import Stores
from reserver.v1 import capacity_pb2, reservation_pb2, scheduler_pb2
from reserver.v1.capacity_pb2_grpc import add_CapacityServiceServicer_to_server
from reserver.v1.reservation_pb2_grpc import add_ReservationServiceServicer_to_server
from reserver.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server

_LOOK_EVERY_S = 0.25
"""Seconds between two checks of the readiness for health watches."""

_STATUS = health_pb2.HealthCheckResponse


class Service:
    """The services of the gRPC API on one state.

    Attributes:
        interceptors: the interceptors of every call, outermost first.
        feed: the changes of reservations, for watches.
    """

    def __init__(  # noqa: PLR0913 - the parts of all services
        self,
        *,
        state: State,
        stores: Stores,
        extender: Extender,
        namespace: str,
        clock: Callable[[], float],
        access: CallAccess | None,
        readiness: Readiness,
        counted: Metrics,
        past: ArchiveWriter,
        counted_holds: AccountWriter,
        dump: Callable[[], Awaitable[bytes]],
    ) -> None:
        """Assemble the services; `access` None allows every caller."""
        catalogue = Catalogue(stores, state, clock, namespace, past.archive)
        creation = Creation(state, clock, catalogue, stores, readiness)
        changes = Changes(state, clock, catalogue, stores, readiness)
        self.feed = ReservationFeed(catalogue)
        self._reservations = Reservations(
            catalogue, self.feed, creation, changes, past, clock, state.pods
        )
        self._capacity = CapacityServicer(
            state, extender, clock, stores, namespace, counted_holds, dump
        )
        self._scheduler = SchedulerServicer(extender)
        calls = Calls(access, readiness.obstacles, counted)
        self.interceptors: list[grpc.aio.ServerInterceptor] = [calls]

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the services with a server."""
        add_ReservationServiceServicer_to_server(self._reservations, server)
        add_CapacityServiceServicer_to_server(self._capacity, server)
        add_SchedulerServiceServicer_to_server(self._scheduler, server)


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # it has no types
    """The health service of gRPC: the readiness of `/readyz`, at once in Check, soon in Watch."""

    def __init__(self, services: Iterable[str], obstacles: Callable[[], tuple[str, ...]]) -> None:
        """Report the health of services; `obstacles` returns the reasons for not being ready."""
        super().__init__()
        self._names = ("", *services)
        self._obstacles = obstacles
        self._reported: int | None = None
        self._looking = asyncio.Lock()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802 - as gRPC has it
        """Return the present health."""
        await self._look()
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: ANN401, N802 - as gRPC has it
        """Send the present health, and then each change."""
        await self._look()
        await super().Watch(request, context)

    async def follow(self) -> None:
        """Report each change of the readiness to watchers, until cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _look(self) -> None:
        async with self._looking:
            now = _STATUS.NOT_SERVING if self._obstacles() else _STATUS.SERVING
            if now != self._reported:
                for name in self._names:
                    await self.set(name, now)
                self._reported = now


SERVICES = tuple(
    service.full_name
    for contract in (reservation_pb2, capacity_pb2, scheduler_pb2)
    for service in contract.DESCRIPTOR.services_by_name.values()
)
"""The full names of Reserver's own services."""

MOST_BYTES = 4 * 2**20
"""Bound on a received message, in bytes."""

MOST_METADATA_BYTES = 32 * 1024
"""Bound on the headers of a call, in bytes; a token may take half of them."""

MOST_CONNECTIONS = 1_000

_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.so_reuseport", 0),  # A taken port is an error.
    # Bounds for unauthenticated clients (docs/adr/0020).
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.max_metadata_size", MOST_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MOST_METADATA_BYTES),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 120_000),
    # Clients behind a load balancer reconnect, so that a new replica gets its share.
    ("grpc.max_connection_age_ms", 3_600_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    # Detects a client that vanished without closing its connection within a minute.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


@asynccontextmanager
async def serving(
    address: tuple[str, int],
    service: Service,
    obstacles: Callable[[], tuple[str, ...]],
    drain_s: float,
    tls: TlsFiles | None = None,
) -> AsyncIterator[str]:
    """Serve gRPC, and yield ``ADDRESS:PORT``; at the end let open calls finish.

    Watches end at once, other calls within `drain_s` seconds. Port 0 means any free port. The
    health service depends on the obstacles.

    Raises:
        ConfigurationError: the port is taken, the address is not this machine's, or the files
            are invalid.
    """
    healths = Health(SERVICES, obstacles)
    names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)

    def made() -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=service.interceptors, options=_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS
        )
        service.add_to(server)
        health_pb2_grpc.add_HealthServicer_to_server(healths, server)
        reflection.enable_server_reflection(names, server)
        return server

    port = Port(address, made, tls)
    await port.open()
    background = list(map(asyncio.create_task, (healths.follow(), port.follow_certificates())))
    try:
        yield port.address
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        service.feed.end()
        await healths.enter_graceful_shutdown()
        await port.close(drain_s)
