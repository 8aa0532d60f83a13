"""The `reserver` command: its subcommands, in one place."""

from __future__ import annotations

import typer

from reserver.cli import explain
from reserver.cli.demo import demo
from reserver.cli.migrate import migrate
from reserver.cli.serve import serve

app = typer.Typer(
    name="reserver",
    help="Capacity reservations that the stock kube-scheduler respects.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(demo)
app.command()(migrate)
app.add_typer(explain.app, name="explain")


def main() -> None:
    """Run the command line."""
    app()
