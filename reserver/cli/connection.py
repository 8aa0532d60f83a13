"""Connects a command to Reserver: at an address, or through the API server of a kubeconfig."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, TypeVar

from reserver.cli import failure, interrupt
from reserver.cli.failure import ExitStatus, Failed, Refused, WrongUsage
from reserver.cli.target import Target
from reserver.cli.terminal import Retries
from reserver.errors import ApiError, ConfigurationError, NotReady
from reserver.settings.flags import parse_address

if TYPE_CHECKING:
    from reserver.client import Client
    from reserver.k8s.client import ApiClient
    from reserver.k8s.credentials import Credentials

DEFAULT_NAMESPACE = "default"

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Session:
    """A connection under way.

    Attributes:
        namespace: of the kubeconfig's context; `DEFAULT_NAMESPACE` where there is none.
    """

    client: Client
    namespace: str


def run(target: Target, work: Callable[[Session], Awaitable[Answer]]) -> Answer:
    """Return the result of `work`."""
    return interrupt.run(_run(target, work))


async def _run(target: Target, work: Callable[[Session], Awaitable[Answer]]) -> Answer:
    async with connected(target) as session:
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
    way = _at_address if target.address else _through_tunnel
    async with way(target, deadline_s) as session:
        yield session


async def calling(target: Target, work: Callable[[ApiClient, str], Awaitable[Answer]]) -> Answer:
    """Return the result of `work`, given a client of the API server and the context's namespace.

    Raises:
        ConfigurationError: there is no kubeconfig that can be used.
    """
    from reserver.k8s import credentials
    from reserver.k8s.client import ApiClient

    access = await credentials.load(target.kubeconfig, target.context)
    async with ApiClient(access) as client:
        return await work(client, access.namespace or DEFAULT_NAMESPACE)


async def default_namespace(target: Target) -> str:
    """Return the namespace that `Session` would have, without a connection."""
    from reserver.k8s import credentials

    if target.address:
        return DEFAULT_NAMESPACE
    with suppress(ConfigurationError):
        access = await credentials.load(target.kubeconfig, target.context)
        return access.namespace or DEFAULT_NAMESPACE
    return DEFAULT_NAMESPACE


@asynccontextmanager
async def _at_address(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    from reserver.client.connection import is_loopback

    host = _host(target.address)
    token = target.token
    if not is_loopback(target.address):
        if target.ca_file is None:
            problem = f"Reserver serves TLS beyond loopback, as at {host}"
            raise WrongUsage(f"--ca-file: is missing; {problem}: give its CA")
        if not token:
            from reserver.k8s import credentials

            token = await _token_of(await credentials.load(target.kubeconfig, target.context))
    with _explained(lambda: f"at {target.address}", _remedy_of_address):
        async with _client(target, target.address, token, "", deadline_s) as client:
            yield Session(client, DEFAULT_NAMESPACE)


def _remedy_of_address() -> str:
    demo = os.environ.get("DEMO")
    if demo and not Path(demo).exists():
        return "the demo of this shell has ended; start another, and type the line that it prints"
    return "give the gRPC address that `reserver serve` prints as --address"


@asynccontextmanager
async def _through_tunnel(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    from reserver.k8s import credentials
    from reserver.k8s.client import ApiClient
    from reserver.k8s.portforward import Tunnel
    from reserver.k8s.serving_pod import serving_pod

    access = await credentials.load(target.kubeconfig, target.context)
    namespace = target.reserver_namespace
    async with ApiClient(access) as api:
        token = target.token
        if target.ca_file is not None and not token:
            token = await _token_of(access)
        tunnel = Tunnel(api, lambda: serving_pod(api, namespace))
        remedy = "it needs --grpc-address, and the caller --ca-file where that is over TLS"
        renewing = asyncio.create_task(access.renew())
        try:
            with _forwarding(namespace):
                async with tunnel.open():
                    with (
                        interrupt.undoing(partial(rmtree, tunnel.folder, ignore_errors=True)),
                        _explained(lambda: tunnel.target, lambda: tunnel.problem or remedy),
                    ):
                        name = f"reserver.{namespace}.svc"
                        async with _client(
                            target, tunnel.address, token, name, deadline_s
                        ) as client:
                            yield Session(client, access.namespace or DEFAULT_NAMESPACE)
        finally:
            renewing.cancel()


@contextmanager
def _forwarding(namespace: str) -> Iterator[None]:
    """Add the remedy if there is no pod to connect to, or no right to do so."""
    try:
        yield
    except NotReady as exc:
        remedy = "install it there, or pass --reserver-namespace or --address"
        raise Failed(ExitStatus.UNREACHABLE, f"{exc}; {remedy}") from exc
    except ApiError as exc:
        if exc.status != HTTPStatus.FORBIDDEN:
            raise
        remedy = f"ask for a RoleBinding to the Role reserver-cli in {namespace}"
        raise Refused(f"{exc}; {remedy}") from exc


@contextmanager
def _explained(target: Callable[[], str], why: Callable[[], str]) -> Iterator[None]:
    """Add to a call without an answer where it was made."""
    from reserver.client import CallFailed

    try:
        yield
    except CallFailed as exc:
        if not failure.is_without_answer(exc):
            raise
        if exc.reason:  # Reserver itself has said so.
            message = f"reserver {target()} cannot answer yet: {exc.message}"
        else:
            message = f"cannot reach reserver {target()}: {failure.cause(exc)}; {why()}"
        raise Failed(ExitStatus.UNREACHABLE, message) from exc


_CONNECT_S = 3.0
"""Connection timeout, in seconds."""


def _client(
    target: Target, address: str, token: str, server_name: str, deadline_s: float | None
) -> Client:
    """Return a client, which connects with its first call."""
    from reserver.client import DEADLINE_S, Client, connection

    is_read_by_others = bool(token) and not connection.is_loopback(address)
    if (is_read_by_others or target.client_certificate) and target.ca_file is None:
        flag = "--token" if is_read_by_others else "--client-certificate"
        raise WrongUsage(f"{flag}: is sent over TLS only; give --ca-file, too")
    return Client(
        address,
        token=token,
        root_certificates=_read("--ca-file", target.ca_file) if target.ca_file else None,
        client_certificate=_certificate(target),
        server_name=server_name,
        deadline_s=deadline_s or DEADLINE_S,
        connect_s=_CONNECT_S,
        retrying=Retries(target.address),
    )


async def _token_of(access: Credentials) -> str:
    """Return the user's token for the API server."""
    token = (await access.authorization() or "").removeprefix("Bearer ")
    if not token:
        problem = f"is missing, and {access.source} has none"
        raise WrongUsage(f"--token: {problem}; give $(kubectl create token NAME)")
    return token


def _host(address: str) -> str:
    """Return the host of ``HOST:PORT``."""
    if "://" in address:
        problem = f"{address!r} is a URL, and the gRPC API has none"
        raise WrongUsage(f"--address: {problem}; write HOST:PORT, e.g. 127.0.0.1:9443")
    try:
        name, port = parse_address("--address", address)
    except ConfigurationError as exc:
        raise WrongUsage(str(exc)) from exc
    if not name or not port:
        raise WrongUsage(f"--address: {address!r} is not HOST:PORT; e.g. 127.0.0.1:9443")
    return name


def _certificate(target: Target) -> tuple[bytes, bytes] | None:
    """Return key and certificate."""
    if target.client_certificate is None and target.client_key is None:
        return None
    if target.client_certificate is None or target.client_key is None:
        missing = "--client-key" if target.client_key is None else "--client-certificate"
        raise WrongUsage(f"{missing}: is missing; a certificate and its key go together")
    return (
        _read("--client-key", target.client_key),
        _read("--client-certificate", target.client_certificate),
    )


def _read(flag: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise WrongUsage(f"{flag}: {file} cannot be read: {exc.strerror}") from exc
