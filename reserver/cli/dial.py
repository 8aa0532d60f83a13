"""How a command calls reserver: addresses, certificates, tokens."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

from reserver.cli.failure import Failed, Status
from reserver.cli.patience import Retries
from reserver.cli.target import Target
from reserver.errors import ConfigurationError
from reserver.flags import parse_address

if TYPE_CHECKING:
    from reserver.client import Client
    from reserver.kube.api.credentials import Credentials


_CONNECT_S = 3.0
"""How long a command tries to reach reserver where nobody answers, in seconds."""


def client(
    target: Target, address: str, token: str, server_name: str, deadline_s: float | None
) -> Client:
    """Return a client, which connects with its first call.

    Raises:
        Failed: options do not go together, or a file cannot be read.
    """
    from reserver.client import DEADLINE_S, Client, connection

    is_read_by_others = bool(token) and not connection.is_loopback(address)
    if (is_read_by_others or target.client_certificate) and target.ca_file is None:
        flag = "--token" if is_read_by_others else "--client-certificate"
        raise Failed(Status.USAGE, f"{flag}: is sent over TLS only; give --ca-file, too")
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


async def token_of_kubeconfig(target: Target) -> str:
    """Return the token of the kubeconfig's user; the errors are those of `token_of`."""
    from reserver.kube.api import credentials

    return await token_of(await credentials.load(target.kubeconfig, target.context))


async def token_of(access: Credentials) -> str:
    """Return the token that the API server knows the user by.

    Raises:
        Failed: there is none.
    """
    token = (await access.authorization() or "").removeprefix("Bearer ")
    if not token:
        problem = f"is missing, and {access.source} has none"
        raise Failed(Status.USAGE, f"--token: {problem}; give $(kubectl create token NAME)")
    return token


def host(address: str) -> str:
    """Return the host of ``HOST:PORT``.

    Raises:
        Failed: it is not of that form.
    """
    if "://" in address:
        problem = f"{address!r} is a URL, and the gRPC API has none"
        raise Failed(Status.USAGE, f"--address: {problem}; write HOST:PORT, e.g. 127.0.0.1:9443")
    try:
        name, port = parse_address("--address", address)
    except ConfigurationError as exc:
        raise Failed(Status.USAGE, str(exc)) from exc
    if not name or not port:
        raise Failed(Status.USAGE, f"--address: {address!r} is not HOST:PORT; e.g. 127.0.0.1:9443")
    return name


def is_loopback(name: str) -> bool:
    """Return whether a host is this machine, or this pod."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _certificate(target: Target) -> tuple[bytes, bytes] | None:
    """Return key and certificate."""
    if target.client_certificate is None and target.client_key is None:
        return None
    if target.client_certificate is None or target.client_key is None:
        missing = "--client-key" if target.client_key is None else "--client-certificate"
        raise Failed(Status.USAGE, f"{missing}: is missing; a certificate and its key go together")
    return (
        _read("--client-key", target.client_key),
        _read("--client-certificate", target.client_certificate),
    )


def _read(flag: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise Failed(Status.USAGE, f"{flag}: {file} cannot be read: {exc.strerror}") from exc
