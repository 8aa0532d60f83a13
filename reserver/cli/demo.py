"""`reserver demo`: reservations at work on an embedded cluster."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from reserver.process import logs
from reserver.settings.serve import LogLevel


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Play the scenario and exit: 0 if all of it came true.")
    ] = False,
    tour: Annotated[
        bool, typer.Option("--tour", help="Take a guided tour: type each step yourself.")
    ] = False,
) -> None:
    """Watch reservations at work on an embedded cluster, then try it yourself.

    Examples:
        reserver demo
        reserver demo --tour
    """
    if tour and (once or not sys.stdin.isatty()):
        typer.echo("reserver: --tour needs a terminal to type in, and excludes --once", err=True)
        raise typer.Exit(2)
    if sys.stdout.isatty():
        typer.echo("Starting a cluster in this process, with Reserver …")
    # gRPC would warn of each command that the tour starts.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    import uvloop
    from rich.console import Console

    from reserver.cli import interrupt
    from reserver_demo import guided_tour, run

    logs.configure(LogLevel.ERROR)
    console = Console()
    running = guided_tour.tour(console) if tour else run.run(console, once=once)
    sys.exit(0 if interrupt.run(running, uvloop.new_event_loop) else 1)
