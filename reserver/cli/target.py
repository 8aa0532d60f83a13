"""The address of Reserver, by the flags of a command."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reserver.settings.flags import flag

CONNECTION = "Connection"
"""The heading of the options that `reserver options` shows for all commands."""

_flag = partial(flag, panel=CONNECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of Reserver, and the credentials for it."""

    address: str = _flag(
        "Address of the gRPC API. Default: a Reserver pod, through the kubeconfig.",
        default="",
        metavar="HOST:PORT",
        in_environment=True,
    )
    ca_file: Path | None = _flag(
        "PEM file with the CA of Reserver's TLS certificate.", in_environment=True
    )
    client_certificate: Path | None = _flag(
        "PEM file with a client certificate, if Reserver asks for one."
    )
    client_key: Path | None = _flag("PEM file with the client certificate's key.")
    token: str = _flag(
        "Bearer token. Default: over TLS beyond loopback, that of the kubeconfig's user.",
        default="",
        metavar="TOKEN",
        in_environment=True,
    )
    kubeconfig: Path | None = _flag("Kubeconfig file. Default: $KUBECONFIG, then ~/.kube/config.")
    context: str = _flag(
        "Context of the kubeconfig. Default: the current one.", default="", metavar="NAME"
    )
    reserver_namespace: str = _flag(
        "Namespace of Reserver's pods.",
        default="reserver-system",
        metavar="NAME",
        in_environment=True,
    )
