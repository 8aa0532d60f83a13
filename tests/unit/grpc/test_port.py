"""Connections to the gRPC API when its certificates or its clients' CA change."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from reserver.grpc.port import Port
from reserver.http.tls_files import TlsFiles
from tests.waiting import until

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4
_PATIENCE_S = 20
_REQUEST = health_pb2.HealthCheckRequest()


class Pki:
    """The files of a server, the CA of its clients, and another CA."""

    def __init__(self, folder: Path) -> None:
        self.own, self.clients, self.other = trustme.CA(), trustme.CA(), trustme.CA()
        self.client_ca = folder / "ca.crt"
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key", self.client_ca)
        made = self.own.issue_cert("127.0.0.1")
        made.cert_chain_pems[0].write_to_path(self.files.certificate)
        made.private_key_pem.write_to_path(self.files.private_key)
        self.trust(self.clients)

    def trust(self, ca: trustme.CA) -> None:
        self.client_ca.write_bytes(ca.cert_pem.bytes())

    @asynccontextmanager
    async def channel(self, address: str, ca: trustme.CA) -> AsyncIterator[grpc.aio.Channel]:
        made = ca.issue_cert("client")
        credentials = grpc.ssl_channel_credentials(
            self.own.cert_pem.bytes(),
            made.private_key_pem.bytes(),
            made.cert_chain_pems[0].bytes(),
        )
        options = (
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
        )
        async with grpc.aio.secure_channel(address, credentials, options) as channel:
            yield channel


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
async def port(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    monkeypatch.setattr("reserver.grpc.port._LAST_S", 0.1)
    healths = health.aio.HealthServicer()

    def made() -> grpc.aio.Server:
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        health_pb2_grpc.add_HealthServicer_to_server(healths, server)
        return server

    port = Port(("127.0.0.1", 0), made, pki.files)
    await port.open()
    following = asyncio.create_task(port.follow_certificates())
    yield port
    following.cancel()
    await healths.enter_graceful_shutdown()
    await port.close(0)


async def test_a_kept_connection_and_its_streams_end_when_the_ca_is_replaced(
    pki: Pki, port: Port
) -> None:
    async with pki.channel(port.address, pki.clients) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        await stub.Check(_REQUEST)
        stream = stub.Watch(_REQUEST)
        await stream.read()
        pki.trust(pki.other)
        with pytest.raises(grpc.aio.AioRpcError):
            async with asyncio.timeout(_PATIENCE_S):
                await stream.read()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(_REQUEST, timeout=_PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_of_the_new_ca_is_served_on_the_same_port(pki: Pki, port: Port) -> None:
    former = port.address
    pki.trust(pki.other)
    async with pki.channel(former, pki.other) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        await stub.Check(_REQUEST, wait_for_ready=True, timeout=_PATIENCE_S)
    assert port.address == former


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_that_the_former_ca_let_in_is_not_resumed(
    pki: Pki, port: Port, version: ssl.TLSVersion
) -> None:
    tls = ssl.create_default_context()
    tls.set_alpn_protocols(["h2"])
    tls.maximum_version = version
    pki.own.configure_trust(tls)
    pki.clients.issue_cert("client").configure_cert(tls)
    answer, session = await asyncio.to_thread(_talk, port.address, tls, None)
    assert answer[3] == _SETTINGS
    with capture_logs() as logs:
        pki.trust(pki.other)
        await until(lambda: logs)
    assert logs[0]["event"] == "certificates read again, the gRPC API's connections end"
    answer, _ = await asyncio.to_thread(_talk, port.address, tls, session)
    assert answer == b""


def _talk(
    address: str, tls: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[bytes, ssl.SSLSession | None]:
    """Return the first bytes of a server on a new connection, and the TLS session."""
    host, _, number = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(number)), _PATIENCE_S) as plain,
            tls.wrap_socket(plain, server_hostname=host, session=session) as wrapped,
        ):
            wrapped.sendall(_PREFACE)
            return wrapped.recv(2**14), wrapped.session
    except OSError:
        return b"", None


async def test_files_that_are_half_replaced_leave_the_former_ones_in_force(
    pki: Pki, port: Port
) -> None:
    other_key = pki.other.issue_cert("127.0.0.1").private_key_pem.bytes()
    with capture_logs() as logs:
        pki.files.private_key.write_bytes(other_key)  # The key of another certificate.
        await until(lambda: logs)
    assert logs[0]["event"] == "certificates cannot be read, the former ones serve"
    async with pki.channel(port.address, pki.clients) as channel:
        await health_pb2_grpc.HealthStub(channel).Check(_REQUEST)


@pytest.mark.parametrize("steps", range(6))
async def test_a_start_that_is_cancelled_leaves_no_server_and_no_error(steps: int) -> None:
    """Ctrl-C may come at any moment of the start."""
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    port = Port(("127.0.0.1", 0), grpc.aio.server, None)
    opening = asyncio.create_task(port.open())
    for _ in range(steps):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait((opening,))
    await port.close(0)
    if opening.cancelled() and port._number:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port._number)
    gc.collect()
    assert errors == []
