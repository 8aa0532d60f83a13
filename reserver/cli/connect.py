"""How a command reaches reserver: at an address, or through the API server of a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from shutil import rmtree
from typing import TYPE_CHECKING, TypeVar

from reserver.cli import dial, failure, interrupt
from reserver.cli.failure import Failed, Status
from reserver.cli.target import Target
from reserver.errors import ApiError, ConfigurationError, NotReady, ReserverError

if TYPE_CHECKING:
    from reserver.client import Client
    from reserver.kube.api.client import ApiClient

DEFAULT_NAMESPACE = "default"

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


def run(target: Target, work: Callable[[Session], Awaitable[Answer]]) -> Answer:
    """Return the result of `work`; on failure, print why and exit."""
    try:
        return interrupt.run(_run(target, work))
    except ReserverError as exc:
        failure.end(exc)


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
    way = _direct if target.address else _tunnelled
    async with way(target, deadline_s) as session:
        yield session


async def calling(target: Target, work: Callable[[ApiClient, str], Awaitable[Answer]]) -> Answer:
    """Return the result of `work`, given a client of the API server and the context's namespace.

    Raises:
        ConfigurationError: there is no kubeconfig that can be used.
    """
    from reserver.kube.api import credentials
    from reserver.kube.api.client import ApiClient

    access = await credentials.load(target.kubeconfig, target.context)
    async with ApiClient(access) as client:
        return await work(client, access.namespace or DEFAULT_NAMESPACE)


async def default_namespace(target: Target) -> str:
    """Return the namespace that `Session` would have, without a connection."""
    from reserver.kube.api import credentials

    if target.address:
        return DEFAULT_NAMESPACE
    with suppress(ConfigurationError):
        access = await credentials.load(target.kubeconfig, target.context)
        return access.namespace or DEFAULT_NAMESPACE
    return DEFAULT_NAMESPACE


@asynccontextmanager
async def _direct(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    host = dial.host(target.address)
    token = target.token
    if not dial.is_loopback(host):
        if target.ca_file is None:
            problem = f"reserver serves over TLS where it is not on loopback, as {host}"
            raise Failed(Status.USAGE, f"--ca-file: is missing; {problem}: give its CA")
        token = token or await dial.token_of_kubeconfig(target)
    remedy = "give the gRPC address that `reserver serve` prints as --address"
    with _told(lambda: f"at {target.address}", lambda: remedy):
        async with dial.client(target, target.address, token, "", deadline_s) as client:
            yield Session(client, DEFAULT_NAMESPACE)


@asynccontextmanager
async def _tunnelled(target: Target, deadline_s: float | None) -> AsyncIterator[Session]:
    from reserver.kube.api import credentials
    from reserver.kube.api.client import ApiClient
    from reserver.kube.api.portforward import Tunnel
    from reserver.kube.api.serving_pod import serving_pod

    access = await credentials.load(target.kubeconfig, target.context)
    namespace = target.reserver_namespace
    async with ApiClient(access) as api:
        token = target.token
        if target.ca_file is not None and not token:
            token = await dial.token_of(access)
        tunnel = Tunnel(api, lambda: serving_pod(api, namespace))
        remedy = "it needs --grpc-address, and the caller --ca-file where that is over TLS"
        renewing = asyncio.create_task(access.renew())
        try:
            with _forwarding(namespace):
                async with tunnel.open():
                    with (
                        interrupt.undoing(partial(rmtree, tunnel.folder, ignore_errors=True)),
                        _told(lambda: tunnel.target, lambda: tunnel.problem or remedy),
                    ):
                        name = f"reserver.{namespace}.svc"
                        async with dial.client(
                            target, tunnel.address, token, name, deadline_s
                        ) as client:
                            yield Session(client, access.namespace or DEFAULT_NAMESPACE)
        finally:
            renewing.cancel()


@contextmanager
def _forwarding(namespace: str) -> Iterator[None]:
    """Say what to do if there is no pod to connect to, or no right to."""
    try:
        yield
    except NotReady as exc:
        remedy = "install it there, or pass --reserver-namespace or --address"
        raise Failed(Status.UNREACHABLE, f"{exc}; {remedy}") from exc
    except ApiError as exc:
        if exc.status != HTTPStatus.FORBIDDEN:
            raise
        remedy = f"ask for a RoleBinding to the Role reserver-cli in {namespace}"
        raise Failed(Status.REFUSED, f"{exc}; {remedy}") from exc


@contextmanager
def _told(target: Callable[[], str], why: Callable[[], str]) -> Iterator[None]:
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
        raise Failed(Status.UNREACHABLE, message) from exc
