"""The callers and connections that are allowed, and the log of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from reserver.errors import ApiError, ConfigurationError
from reserver.grpc.access import CallAccess, call_of
from reserver.grpc.service import serving
from reserver.http.tls_files import TlsFiles
from reserver.k8s.objects.reviews import User
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from tests.builders import node, state_of
from tests.unit.grpc.services import service_of

NAME = "reserver.test"
ANN = User("ann", "u-1", ("people",))


class Reviewer:
    """Authorizes Ann to read, and Root to do anything."""

    def __init__(self) -> None:
        self.answers = True
        self.peers: set[str] = set()

    async def authenticate(self, token: str, peer: str) -> User | None:
        self.peers.add(peer)
        if not self.answers:
            raise ApiError(0, "Unreachable", "connection refused")
        return {"ann": ANN, "root": User("root", "u-0", ())}.get(token)

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        return user.name == "root" or (verb == "get" and resource == "reservations" and name != "x")


class Files:
    """Certificates in a folder."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
        self.issue(self.ca)
        self.ca.cert_pem.write_to_path(folder / "ca.crt")

    def issue(self, ca: trustme.CA) -> None:
        certificate = ca.issue_cert(NAME)
        certificate.private_key_pem.write_to_path(self.files.private_key)
        self.files.certificate.write_bytes(certificate.cert_chain_pems[0].bytes())

    @asynccontextmanager
    async def channel(
        self, address: str, ca: trustme.CA | None = None, *, certificate: bool = False
    ) -> AsyncIterator[grpc.aio.Channel]:
        root = (ca or self.ca).cert_pem.bytes()
        own = self.ca.issue_cert("client")
        pair = (own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes()) if certificate else ()
        credentials = grpc.ssl_channel_credentials(root, *pair)
        options = (
            ("grpc.ssl_target_name_override", NAME),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
        )
        async with grpc.aio.secure_channel(address, credentials, options) as channel:
            yield channel


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@asynccontextmanager
async def served(files: Files, reviewer: Reviewer, *, mutual: bool = False) -> AsyncIterator[str]:
    service = service_of(state=state_of(node("worker-1", cpu="4")), access=CallAccess(reviewer))
    tls = files.files if mutual else files.files._replace(client_ca=None)
    async with serving(("127.0.0.1", 0), service, tuple, 1.0, tls) as address:
        yield address


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ((), grpc.StatusCode.UNAUTHENTICATED),
        (bearer("nobody"), grpc.StatusCode.UNAUTHENTICATED),
        ((("authorization", "ann"),), grpc.StatusCode.UNAUTHENTICATED),
        ((("authorization", "Basic ann"),), grpc.StatusCode.UNAUTHENTICATED),
        (bearer("ann"), grpc.StatusCode.PERMISSION_DENIED),
        (bearer("root"), grpc.StatusCode.NOT_FOUND),
    ],
    ids=["none", "unknown", "no-scheme", "other-scheme", "may-not", "may"],
)
async def test_who_may_not_is_told_and_leaves_a_trace(
    files: Files, metadata: Any, code: grpc.StatusCode
) -> None:
    async with served(files, Reviewer()) as address, files.channel(address) as channel:
        api = ReservationServiceStub(channel)
        with capture_logs() as logs:
            call = api.Release(pb.ReleaseRequest(name="web"), metadata=metadata)
            assert await code_of(call) is code
            watch = api.Watch(pb.WatchRequest(), metadata=metadata[:0])
            assert await code_of(watch.read()) is grpc.StatusCode.UNAUTHENTICATED
    first, second = (line for line in logs if line["event"] == "audit")
    known = [user for user in ("ann", "root") if metadata == bearer(user)]
    # The message of an unknown caller is not read.
    assert first["call"] == "ReservationService/Release"
    assert (first["what"], first["code"]) == ("web" if known else "", code.name)
    assert first["who"] == "".join(known)
    assert (second["call"], second["who"]) == ("ReservationService/Watch", "")


async def test_rights_are_asked_for_the_name(files: Files) -> None:
    async with served(files, Reviewer()) as address, files.channel(address) as channel:
        api = ReservationServiceStub(channel)
        may = api.Get(pb.GetRequest(name="web"), metadata=bearer("ann"))
        assert await code_of(may) is grpc.StatusCode.NOT_FOUND
        may_not = api.Get(pb.GetRequest(name="x"), metadata=bearer("ann"))
        assert await code_of(may_not) is grpc.StatusCode.PERMISSION_DENIED


async def test_nobody_is_let_in_while_the_api_server_does_not_say_who_they_are(
    files: Files,
) -> None:
    reviewer = Reviewer()
    reviewer.answers = False
    async with served(files, reviewer) as address, files.channel(address) as channel:
        call = ReservationServiceStub(channel).Get(pb.GetRequest(name="a"), metadata=bearer("root"))
        assert await code_of(call) is grpc.StatusCode.UNAVAILABLE


async def test_health_needs_no_token(files: Files) -> None:
    async with served(files, Reviewer()) as address, files.channel(address) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status in {
            health_pb2.HealthCheckResponse.SERVING,
            health_pb2.HealthCheckResponse.NOT_SERVING,
        }


async def test_mutual_tls_wants_a_certificate_and_a_token(files: Files) -> None:
    async with served(files, Reviewer(), mutual=True) as address:
        request = pb.GetRequest(name="a")
        async with files.channel(address) as channel:
            call = ReservationServiceStub(channel).Get(request, metadata=bearer("root"))
            assert await code_of(call) is grpc.StatusCode.UNAVAILABLE  # No connection.
        async with files.channel(address, certificate=True) as channel:
            api = ReservationServiceStub(channel)
            assert await code_of(api.Get(request)) is grpc.StatusCode.UNAUTHENTICATED
            call = api.Get(request, metadata=bearer("root"))
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND


async def test_certificates_are_replaced_while_it_serves(files: Files) -> None:
    other = trustme.CA()
    request = pb.GetRequest(name="a")
    async with served(files, Reviewer()) as address:
        async with files.channel(address) as channel:
            call = ReservationServiceStub(channel).Get(request, metadata=bearer("root"))
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND
        files.issue(other)
        async with files.channel(address, other) as channel:
            stub = ReservationServiceStub(channel)
            call = stub.Get(request, metadata=bearer("root"), wait_for_ready=True, timeout=20)
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND
        files.files.private_key.unlink()  # Half replaced: the former ones serve.
        async with files.channel(address, other) as channel:
            call = ReservationServiceStub(channel).Get(request, metadata=bearer("root"))
            assert await code_of(call) is grpc.StatusCode.NOT_FOUND


async def test_files_that_are_missing_and_ports_that_are_taken_are_named(files: Files) -> None:
    async with served(files, Reviewer()) as address:
        port = int(address.rpartition(":")[2])
        service = service_of()
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serving(("127.0.0.1", port), service, tuple, 1.0):
                pass
    files.files.certificate.unlink()
    with pytest.raises(ConfigurationError, match=r"tls\.crt cannot be read"):
        async with served(files, Reviewer()):
            pass


async def test_watches_end_at_once_when_the_server_ends(files: Files) -> None:
    async with AsyncExitStack() as stack:
        async with served(files, Reviewer()) as address:
            channel = await stack.enter_async_context(files.channel(address))
            api = ReservationServiceStub(channel)
            watch = api.Watch(pb.WatchRequest(), metadata=bearer("root"))
            first: Any = await watch.read()
            assert first.kind == pb.WatchResponse.KIND_BOOKMARK
            waiting = asyncio.create_task(watch.read())
        assert await code_of(waiting) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("writes_objects", "method", "request_", "target"),
    [
        (True, "Create", pb.CreateRequest(name="a", namespace="shop"), "shop/a"),
        (True, "Create", pb.CreateRequest(name="a"), "a"),
        (True, "CreateSet", pb.CreateSetRequest(namespace="shop"), "shop/"),
        (False, "Create", pb.CreateRequest(name="a", namespace="shop"), "a"),
        (False, "CreateSet", pb.CreateSetRequest(namespace="shop"), ""),
        (True, "Release", pb.ReleaseRequest(name="shop/a"), "shop/a"),
    ],
)
def test_the_right_is_reviewed_where_it_is_written(
    *, writes_objects: bool, method: str, request_: Any, target: str
) -> None:
    """A server that writes ConfigMaps writes its own, whatever namespace a request names."""
    access = CallAccess(Reviewer(), writes_objects=writes_objects)
    call = call_of(f"/reserver.v1.ReservationService/{method}")
    assert access.target(call, request_) == target
