"""Listening for gRPC calls until a block ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from reserver.errors import ConfigurationError
from reserver.server.rpc.service import Service
from reserver.server.tls import stamped
from reserver.server.tls_files import TlsFiles
from reserver.v1 import capacity_pb2, reservation_pb2, scheduler_pb2

log = structlog.get_logger(__name__)

SERVICES = tuple(
    service.full_name
    for contract in (reservation_pb2, capacity_pb2, scheduler_pb2)
    for service in contract.DESCRIPTOR.services_by_name.values()
)
"""The services of our contract."""

MOST_BYTES = 4 * 2**20
"""The largest message that is taken, in bytes."""

_LOOK_EVERY_S = 0.25
_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.so_reuseport", 0),  # A port that is taken is an error.
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
    credentials: grpc.ServerCredentials | None = None,
) -> AsyncIterator[str]:
    """Serve gRPC, and yield ``ADDRESS:PORT``; then let calls under way finish.

    Args:
        address: IP address and port; 0 for a free one.
        service: answers calls.
        obstacles: what keeps calls from being answered: the health service tells.
        drain_s: how long calls under way may take to finish, in seconds; watches end at once.
        credentials: None for plain text.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    server = grpc.aio.server(interceptors=(service.calls,), options=_OPTIONS)
    service.add_to(server)
    healths = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healths, server)
    names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    host, port = address
    wanted = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if credentials is None:
            port = server.add_insecure_port(wanted)
        else:
            port = server.add_secure_port(wanted, credentials)
    except RuntimeError as exc:
        raise ConfigurationError(f"--grpc-address: cannot listen on {wanted}") from exc
    await server.start()
    background = (
        asyncio.create_task(_follow(healths, obstacles)),
        asyncio.create_task(service.run()),
    )
    try:
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        service.end()
        await healths.enter_graceful_shutdown()
        await server.stop(drain_s)


async def _follow(
    healths: health.aio.HealthServicer, obstacles: Callable[[], tuple[str, ...]]
) -> None:
    """Let the health service say what readiness is, until cancelled."""
    status = health_pb2.HealthCheckResponse
    said = None
    while True:
        now = status.NOT_SERVING if obstacles() else status.SERVING
        if now != said:
            said = now
            for name in ("", *SERVICES):
                await healths.set(name, now)
        await asyncio.sleep(_LOOK_EVERY_S)


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return TLS credentials made from files, and made anew when those are replaced.

    Args:
        files: certificate and key; with a CA of clients these have to have a certificate of it.

    Raises:
        ConfigurationError: the files cannot be read.
    """
    stamp = stamped(files)
    first = _configuration(files)

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal stamp
        try:
            now = stamped(files)
            if now == stamp:
                return None  # The former ones.
            configuration = _configuration(files)
        except ConfigurationError as exc:
            log.warning("certificates cannot be read anew, the former ones serve", why=str(exc))
            return None
        stamp = now
        log.info("certificates read anew")
        return configuration

    return grpc.dynamic_ssl_server_credentials(
        first,
        fetch,  # type: ignore[arg-type]  # the types do not know that None keeps the former
        require_client_authentication=files.client_ca is not None,
    )


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    try:
        key, chain = files.private_key.read_bytes(), files.certificate.read_bytes()
        ca = files.client_ca.read_bytes() if files.client_ca else None
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror}") from exc
    return grpc.ssl_server_certificate_configuration([(key, chain)], ca)
