"""`reserver serve`: the extender beside kube-scheduler."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Iterator

import typer

from reserver.cli import logs
from reserver.cli.options import taking
from reserver.config import Settings
from reserver.errors import ConfigurationError


@taking
def serve(settings: Settings) -> None:
    """Serve the scheduler extender until SIGTERM or Ctrl-C.

    Examples:
        reserver serve
        reserver serve --kubeconfig ~/.kube/config --grpc-address 127.0.0.1:9443
    """
    import uvloop

    logs.configure(settings.log_level)
    try:
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
    gc.disable()  # What imports make is no garbage, and looking for some takes an eighth of them.
    from reserver import app

    gc.enable()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with app.running(settings) as running:
        typer.echo(f"API server  {running.server} ({running.source})")
        typer.echo(f"extender    {running.url}")
        if running.grpc_address:
            typer.echo(f"gRPC        {running.grpc_address}")
        if running.webhook_url:
            typer.echo(f"webhooks    {running.webhook_url}")
        if running.health_url:
            typer.echo(f"health      {running.health_url}")
        typer.echo(f"store       namespace {settings.namespace}, ConfigMaps labelled as store")
        for namespace, name in settings.configmaps:
            typer.echo(f"            ConfigMap {namespace}/{name}")
        typer.echo("            Reservation objects, in every namespace")
        sys.stdout.flush()
        await stop.wait()
    typer.echo("reserver has stopped")
