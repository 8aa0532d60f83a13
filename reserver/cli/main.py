"""The commands of `reserver`, all of them."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from reserver import DISTRIBUTION
from reserver.cli import (
    apply,
    change,
    completion_script,
    create,
    debug,
    explain,
    get,
    move,
    rebalance,
    top,
)
from reserver.cli.demo import demo
from reserver.cli.drain import drain
from reserver.cli.help import App
from reserver.cli.history import history
from reserver.cli.migrate import migrate
from reserver.cli.options import taking
from reserver.cli.report import report
from reserver.cli.serve import serve
from reserver.cli.validate import validate

_RESERVE, _LOOK, _MOVE, _RUN = "Reserve", "Look", "Move and rebalance", "Run"

app = App(name="reserver")
for command, panel in (
    (create.create, _RESERVE),
    (create.whatif, _RESERVE),
    (validate, _RESERVE),
    (apply.apply, _RESERVE),
    (apply.update, _RESERVE),
    (apply.edit, _RESERVE),
    (change.extend, _RESERVE),
    (change.release, _RESERVE),
    (get.get, _LOOK),
    (get.describe, _LOOK),
    (get.watch, _LOOK),
    (history, _LOOK),
    (move.move, _MOVE),
    (drain, _MOVE),
    (move.moves, _MOVE),
    (move.pause, _MOVE),
    (move.resume, _MOVE),
    (report, _LOOK),
    (taking(serve), _RUN),
    (migrate, _RUN),
    (demo, _RUN),
    (completion_script.completion, _RUN),
):
    app.command(rich_help_panel=panel)(command)
app.add_typer(top.app, name="top", rich_help_panel=_LOOK)
app.add_typer(explain.app, name="explain", rich_help_panel=_LOOK)
app.add_typer(debug.app, name="debug", rich_help_panel=_RUN)
app.add_typer(rebalance.app, name="rebalance", rich_help_panel=_MOVE)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"reserver {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Capacity reservations that the stock kube-scheduler respects.

    Examples:
        reserver demo
        reserver create web-1 --node worker-3 --owner pod/web-0 --cpu 2 --ttl 1h
        reserver get
    """
