"""Where reserver is, and who asks: the flags for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from reserver.flags import Flag

_flag = partial(Flag, panel="Connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where reserver is, and who asks."""

    address: Annotated[
        str,
        _flag(
            "Where reserver serves gRPC. Default: a pod of it, through the kubeconfig.",
            metavar="HOST:PORT",
            in_environment=True,
        ),
    ] = ""
    ca_file: Annotated[
        Path | None, _flag("PEM: the CA of a reserver that serves over TLS.", in_environment=True)
    ] = None
    client_certificate: Annotated[
        Path | None, _flag("PEM: a certificate, for a reserver that asks for one.")
    ] = None
    client_key: Annotated[Path | None, _flag("PEM file with the certificate's key.")] = None
    token: Annotated[
        str,
        _flag(
            "Who asks. Default: over TLS beyond loopback, the token of the kubeconfig's user.",
            metavar="TOKEN",
            in_environment=True,
        ),
    ] = ""
    kubeconfig: Annotated[Path | None, _flag("Default: $KUBECONFIG, ~/.kube/config.")] = None
    context: Annotated[
        str, _flag("Of the kubeconfig. Default: its current one.", metavar="NAME")
    ] = ""
    reserver_namespace: Annotated[
        str, _flag("Where reserver's pods are.", metavar="NAME", in_environment=True)
    ] = "reserver-system"
