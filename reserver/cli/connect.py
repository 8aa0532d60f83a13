"""How a command reaches reserver: at an address, or through the API server of a kubeconfig."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reserver.cli import failure
from reserver.cli.failure import Failed, Status
from reserver.config import parse_address
from reserver.errors import ConfigurationError, NotReady, ReserverError

if TYPE_CHECKING:
    from reserver.client import Client
    from reserver.kube.credentials import Credentials

DEFAULT_NAMESPACE = "default"

_OWN_NAMESPACE = "reserver-system"

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Session:
    """A connection under way.

    Attributes:
        client: asks reserver.
        namespace: of the kubeconfig's context; `DEFAULT_NAMESPACE` where there is none.
    """

    client: Client
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where reserver is, and who asks.

    Attributes:
        address: ``HOST:PORT`` of the gRPC API; empty for the way through the kubeconfig.
        ca_file: PEM of the CAs to trust: turns TLS on.
        token: of the caller, for TLS; that of the kubeconfig's user if it is empty.
        kubeconfig: the file; None for the usual places.
        context: of the kubeconfig; its current one if it is empty.
        reserver_namespace: where reserver's pods are.
    """

    address: str = ""
    ca_file: Path | None = None
    token: str = ""
    kubeconfig: Path | None = None
    context: str = ""
    reserver_namespace: str = _OWN_NAMESPACE

    def run(self, work: Callable[[Session], Awaitable[Answer]]) -> Answer:
        """Return what comes of work that asks reserver; or say what went wrong, and end."""
        try:
            return asyncio.run(self._run(work))
        except KeyboardInterrupt:
            failure.interrupt()
        except ReserverError as exc:
            failure.end(exc)

    async def _run(self, work: Callable[[Session], Awaitable[Answer]]) -> Answer:
        async with connected(self) as session:
            return await work(session)


@asynccontextmanager
async def connected(target: Target, deadline_s: float | None = None) -> AsyncIterator[Session]:
    """A connection to reserver, which is made with the first call.

    Args:
        target: where it is.
        deadline_s: how long a call may take, in seconds; None for the client's own.

    Raises:
        Failed: it cannot be reached, or gave no answer to a call in the block.
        CallFailed: what else a call in the block raised.
    """
    way = _direct if target.address else _tunnelled
    async with way(target, deadline_s) as session:
        yield session


@asynccontextmanager
async def _direct(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    host = _host(target.address)
    token = target.token
    if not _is_loopback(host):
        if target.ca_file is None:
            problem = f"reserver serves over TLS where it is not on loopback, as {host}"
            raise Failed(Status.USAGE, f"--ca-file: is missing; {problem}: give its CA")
        token = token or await _token_of_kubeconfig(target)
    remedy = "give the gRPC address that `reserver serve` prints as --address"
    with _told(f"at {target.address}", lambda: remedy):
        async with _client(target, target.address, token, "", deadline_s) as client:
            yield Session(client, DEFAULT_NAMESPACE)


@asynccontextmanager
async def _tunnelled(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    from reserver.kube import credentials
    from reserver.kube.client import ApiClient
    from reserver.kube.portforward import Tunnel
    from reserver.kube.serving_pod import serving_pod

    access = await credentials.load(target.kubeconfig, target.context)
    async with ApiClient(access) as api:
        try:
            pod = await serving_pod(api, target.reserver_namespace)
        except NotReady as exc:
            remedy = "look there, or give --reserver-namespace or --address"
            raise Failed(Status.UNREACHABLE, f"{exc}; {remedy}") from exc
        token = ""
        if target.ca_file is not None:
            token = target.token or await _token_of(access)
        tunnel = Tunnel(api, pod.name, pod.port)
        name = f"reserver.{target.reserver_namespace}.svc"
        remedy = "it needs --grpc-address, and the caller --ca-file where that is over TLS"
        async with tunnel.open():
            with _told(f"in pod {pod.name}, port {pod.port}", lambda: tunnel.problem or remedy):
                async with _client(target, tunnel.address, token, name, deadline_s) as client:
                    yield Session(client, access.namespace or DEFAULT_NAMESPACE)


def _client(
    target: Target, address: str, token: str, server_name: str, deadline_s: float | None
) -> Client:
    from reserver.client import DEADLINE_S, Client

    if token and target.ca_file is None:
        raise Failed(Status.USAGE, "--token: is sent over TLS only; give --ca-file, too")
    return Client(
        address,
        token=token,
        root_certificates=_read(target.ca_file) if target.ca_file else None,
        server_name=server_name,
        deadline_s=deadline_s or DEADLINE_S,
    )


@contextmanager
def _told(place: str, why: Callable[[], str]) -> Iterator[None]:
    """Say of a call without an answer where it was made."""
    from reserver.client import CallFailed

    try:
        yield
    except CallFailed as exc:
        if not failure.is_without_answer(exc):
            raise
        if exc.reason:  # Reserver itself has said so.
            message = f"reserver {place} cannot answer yet: {exc.message}"
        else:
            message = f"cannot reach reserver {place}: {exc.message}; {why()}"
        raise Failed(Status.UNREACHABLE, message) from exc


async def _token_of_kubeconfig(target: Target) -> str:
    from reserver.kube import credentials

    return await _token_of(await credentials.load(target.kubeconfig, target.context))


async def _token_of(access: Credentials) -> str:
    token = (await access.authorization() or "").removeprefix("Bearer ")
    if not token:
        problem = f"is missing, and {access.source} has none"
        raise Failed(Status.USAGE, f"--token: {problem}; give $(kubectl create token NAME)")
    return token


def _host(address: str) -> str:
    if "://" in address:
        problem = f"{address!r} is a URL, and the gRPC API has none"
        raise Failed(Status.USAGE, f"--address: {problem}; write HOST:PORT, e.g. 127.0.0.1:9443")
    try:
        host, port = parse_address(address, "--address")
    except ConfigurationError as exc:
        raise Failed(Status.USAGE, str(exc)) from exc
    if not host or not port:
        raise Failed(Status.USAGE, f"--address: {address!r} is not HOST:PORT; e.g. 127.0.0.1:9443")
    return host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise Failed(Status.USAGE, f"--ca-file: {file} cannot be read: {exc.strerror}") from exc
