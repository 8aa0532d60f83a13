"""Where Reserver is, by the flags of a command."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from reserver.settings.flags import Flag

CONNECTION = "Connection"
"""The heading of the options that `reserver options` shows for all commands."""

_flag = partial(Flag, panel=CONNECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of Reserver, and the credentials for it."""

    address: Annotated[
        str,
        _flag(
            "Address of the gRPC API. Default: a Reserver pod, through the kubeconfig.",
            metavar="HOST:PORT",
            in_environment=True,
        ),
    ] = ""
    ca_file: Annotated[
        Path | None,
        _flag("PEM file with the CA of Reserver's TLS certificate.", in_environment=True),
    ] = None
    client_certificate: Annotated[
        Path | None, _flag("PEM file with a client certificate, if Reserver asks for one.")
    ] = None
    client_key: Annotated[Path | None, _flag("PEM file with the client certificate's key.")] = None
    token: Annotated[
        str,
        _flag(
            "Bearer token. Default: over TLS beyond loopback, that of the kubeconfig's user.",
            metavar="TOKEN",
            in_environment=True,
        ),
    ] = ""
    kubeconfig: Annotated[
        Path | None, _flag("Kubeconfig file. Default: $KUBECONFIG, then ~/.kube/config.")
    ] = None
    context: Annotated[
        str, _flag("Context of the kubeconfig. Default: the current one.", metavar="NAME")
    ] = ""
    reserver_namespace: Annotated[
        str, _flag("Namespace of Reserver's pods.", metavar="NAME", in_environment=True)
    ] = "reserver-system"
