"""Listening for gRPC calls until a block ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from reserver.grpc.concurrency import MOST_CALLS
from reserver.grpc.port import Port
from reserver.grpc.service import Health, Service
from reserver.http.tls_files import TlsFiles
from reserver.v1 import capacity_pb2, reservation_pb2, scheduler_pb2

SERVICES = tuple(
    service.full_name
    for contract in (reservation_pb2, capacity_pb2, scheduler_pb2)
    for service in contract.DESCRIPTOR.services_by_name.values()
)
"""The services of our contract."""

MOST_BYTES = 4 * 2**20
"""The largest message that is taken, in bytes."""

MOST_METADATA_BYTES = 32 * 1024
"""The bound on all headers of a call, in bytes: a token may take half of it."""

MOST_CONNECTIONS = 1_000

_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.so_reuseport", 0),  # A port that is taken is an error.
    # What anybody may have who reaches us (docs/adr/0020).
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.max_metadata_size", MOST_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MOST_METADATA_BYTES),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 120_000),
    # Clients behind a balancer reconnect: a replica that has just started gets its share.
    ("grpc.max_connection_age_ms", 3_600_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    # A client that is gone without a word is noticed within a minute.
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
    """Serve gRPC, and yield ``ADDRESS:PORT``; then let calls under way finish.

    Watches end at once, other calls after `drain_s` seconds. Port 0 stands for a free one, and the
    health service shows the obstacles.

    Raises:
        ConfigurationError: the port is taken, the address is not this machine's, or the files
            cannot be used.
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
    background = (
        asyncio.create_task(healths.follow()),
        asyncio.create_task(port.follow_certificates()),
    )
    try:
        yield port.address
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        service.feed.end()
        await healths.enter_graceful_shutdown()
        await port.close(drain_s)
