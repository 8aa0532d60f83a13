"""The `reserver` command: its subcommands, in one place."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from reserver.cli import change, create, explain, get, rebalance, top
from reserver.cli.demo import demo
from reserver.cli.migrate import migrate
from reserver.cli.serve import serve
from reserver.cli.validate import validate

_PLUGIN = "kubectl-reserver"
_RESERVE, _LOOK, _REBALANCE, _RUN = "Reserve", "Look", "Rebalance", "Run"

app = typer.Typer(
    name="reserver",
    help="Capacity reservations that the stock kube-scheduler respects.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command, panel in (
    (create.create, _RESERVE),
    (create.whatif, _RESERVE),
    (validate, _RESERVE),
    (change.extend, _RESERVE),
    (change.release, _RESERVE),
    (get.get, _LOOK),
    (get.describe, _LOOK),
    (get.watch, _LOOK),
    (serve, _RUN),
    (migrate, _RUN),
    (demo, _RUN),
):
    app.command(rich_help_panel=panel)(command)
app.add_typer(top.app, name="top", rich_help_panel=_LOOK)
app.add_typer(explain.app, name="explain", rich_help_panel=_LOOK)
app.add_typer(rebalance.app, name="rebalance", rich_help_panel=_REBALANCE)


def program_name(path: str) -> str:
    """Return what a user calls the program that was started as `path`."""
    return "kubectl reserver" if Path(path).name == _PLUGIN else "reserver"


def main() -> None:
    """Run the command line."""
    app(prog_name=program_name(sys.argv[0]))
