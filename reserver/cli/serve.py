"""`reserver serve`: the extender beside kube-scheduler."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from reserver.cli import logs
from reserver.config import (
    ReservationStore,
    Settings,
    parse_address,
    parse_configmap,
    parse_tls,
)
from reserver.errors import ConfigurationError

_DEFAULTS = Settings()


def serve(
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_KUBECONFIG",
            help="Default: $KUBECONFIG, the pod's service account, ~/.kube/config.",
        ),
    ] = None,
    bind_address: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_BIND_ADDRESS",
            help="IP address to listen on: a loopback one, or any with mutual TLS.",
        ),
    ] = _DEFAULTS.bind_address,
    http_port: Annotated[
        int,
        typer.Option(
            envvar="RESERVER_HTTP_PORT",
            min=0,
            max=65535,
            help="Port of the extender; 0: a free one.",
        ),
    ] = _DEFAULTS.http_port,
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_TLS_CERT_FILE",
            help="PEM: certificate of the extender and the gRPC API, and what leads to its CA.",
        ),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None,
        typer.Option(envvar="RESERVER_TLS_PRIVATE_KEY_FILE", help="PEM: the key of that."),
    ] = None,
    extender_client_ca_file: Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_EXTENDER_CLIENT_CA_FILE",
            help="PEM: the extender is for clients with a certificate of these CAs and one of the "
            "allowed names; without it it is plain HTTP.",
        ),
    ] = None,
    extender_allowed_name: Annotated[
        list[str] | None,
        typer.Option(
            envvar="RESERVER_EXTENDER_ALLOWED_NAME",
            metavar="NAME",
            help="Who may call the extender: a common name, DNS name or URI of the client's "
            "certificate. May be given more than once. Default: system:kube-scheduler.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            envvar="RESERVER_ALLOWED_HOST",
            metavar="HOST",
            help="A further host that HTTP calls may be for: that of kube-scheduler's urlPrefix "
            "where it is no loopback address. May be given more than once.",
        ),
    ] = None,
    health_address: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_HEALTH_ADDRESS",
            metavar="ADDRESS:PORT",
            help="Serve health and metrics here, too, over plain HTTP, e.g. 0.0.0.0:9441.",
        ),
    ] = "",
    grpc_address: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_GRPC_ADDRESS",
            metavar="ADDRESS:PORT",
            help="Serve the gRPC API here, e.g. 127.0.0.1:9443; beyond loopback over TLS, "
            "to whom the API server knows by their token.",
        ),
    ] = "",
    grpc_client_ca_file: Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_GRPC_CLIENT_CA_FILE",
            help="PEM: gRPC clients need a certificate of these CAs as well as a token.",
        ),
    ] = None,
    grpc_loopback_tls: Annotated[
        bool,
        typer.Option(
            "--grpc-loopback-tls",
            envvar="RESERVER_GRPC_LOOPBACK_TLS",
            help="Serve the gRPC API over TLS on loopback, too.",
        ),
    ] = False,
    grpc_loopback_tokens: Annotated[
        bool,
        typer.Option(
            "--grpc-loopback-tokens",
            envvar="RESERVER_GRPC_LOOPBACK_TOKENS",
            help="gRPC clients need a token on loopback, too.",
        ),
    ] = False,
    grpc_audience: Annotated[
        list[str] | None,
        typer.Option(
            envvar="RESERVER_GRPC_AUDIENCE",
            metavar="AUDIENCE",
            help="Tokens have to be for this audience. May be given more than once. Default: the "
            "API server's own.",
        ),
    ] = None,
    leader_elect: Annotated[
        bool,
        typer.Option(
            envvar="RESERVER_LEADER_ELECT",
            help="Stand by while another reserver holds the Lease of this namespace.",
        ),
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_NAMESPACE",
            help='Namespace of the ConfigMaps that are labelled reserver.io/store: "true".',
        ),
    ] = _DEFAULTS.namespace,
    configmap: Annotated[
        list[str] | None,
        typer.Option(
            envvar="RESERVER_CONFIGMAP",
            metavar="NAMESPACE/NAME",
            help="A further store ConfigMap, labelled or not. May be given more than once.",
        ),
    ] = None,
    exempt_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="RESERVER_EXEMPT_NAMESPACE",
            metavar="NAMESPACE",
            help="A namespace beside kube-system where pods of the system's priority classes may "
            "take what is held. May be given more than once.",
        ),
    ] = None,
    crd: Annotated[
        bool,
        typer.Option(
            "--crd",
            envvar="RESERVER_CRD",
            help="Wait for the CRD reservations.reserver.io; else it is read once it is there.",
        ),
    ] = False,
    reservation_store: Annotated[
        ReservationStore,
        typer.Option(
            envvar="RESERVER_RESERVATION_STORE",
            help="What the gRPC API creates: keys of ConfigMaps, or Reservation objects, for which "
            "the CRD has to be there.",
        ),
    ] = _DEFAULTS.reservation_store,
    default_quota: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_DEFAULT_QUOTA",
            metavar="NAME=LIMIT,…",
            help="What the reservations of a namespace without a ReservationQuota may hold; none: "
            "anything. It does not count in --namespace and the namespaces of --configmap.",
        ),
    ] = _DEFAULTS.default_quota,
    log_level: Annotated[
        logs.Level, typer.Option(envvar="RESERVER_LOG_LEVEL", help="From this level on.")
    ] = logs.Level.INFO,
) -> None:
    """Serve the scheduler extender until SIGTERM or Ctrl-C."""
    import uvloop

    logs.configure(log_level)
    try:
        tls, grpc_tls = parse_tls(
            tls_cert_file, tls_private_key_file, extender_client_ca_file, grpc_client_ca_file
        )
        settings = Settings(
            kubeconfig=kubeconfig,
            bind_address=bind_address,
            http_port=http_port,
            tls=tls,
            extender_allowed_names=tuple(extender_allowed_name or _DEFAULTS.extender_allowed_names),
            allowed_hosts=tuple(allowed_host or ()),
            health_address=parse_address(health_address) if health_address else None,
            grpc_address=(parse_address(grpc_address, "--grpc-address") if grpc_address else None),
            grpc_tls=grpc_tls,
            grpc_loopback_tls=grpc_loopback_tls,
            grpc_loopback_tokens=grpc_loopback_tokens,
            grpc_audiences=tuple(grpc_audience or ()),
            leader_elect=leader_elect,
            namespace=namespace,
            exempt_namespaces=(*_DEFAULTS.exempt_namespaces, *(exempt_namespace or ())),
            crd=crd,
            reservation_store=reservation_store,
            configmaps=tuple(parse_configmap(name) for name in configmap or ()),
            default_quota=default_quota,
        )
        uvloop.run(_serve(settings))
    except* ConfigurationError as group:
        for problem in _leaves(group):
            typer.echo(f"reserver: {problem}", err=True)
        sys.exit(2)


def _leaves(group: BaseExceptionGroup) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _serve(settings: Settings) -> None:
    from reserver import app

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with app.running(settings) as running:
        typer.echo(f"API server  {running.server} ({running.source})")
        typer.echo(f"extender    {running.url}")
        if running.grpc_address:
            typer.echo(f"gRPC        {running.grpc_address}")
        if running.health_url:
            typer.echo(f"health      {running.health_url}")
        typer.echo(f"store       namespace {settings.namespace}, ConfigMaps labelled as store")
        for namespace, name in settings.configmaps:
            typer.echo(f"            ConfigMap {namespace}/{name}")
        typer.echo("            Reservation objects, in every namespace")
        sys.stdout.flush()
        await stop.wait()
    typer.echo("reserver has stopped")
