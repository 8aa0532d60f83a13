"""`reserver demo`: reservations at work on an embedded cluster."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reserver.cli import logs
from reserver.config import LogLevel


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Play and exit: 0 if all came true, 1 if not.")
    ] = False,
) -> None:
    """See reservations protect capacity on an embedded cluster, then try it yourself."""
    import uvloop
    from rich.console import Console

    from reserver.cli.demo_run import run

    logs.configure(LogLevel.ERROR)
    sys.exit(0 if uvloop.run(run(Console(), once=once)) else 1)
