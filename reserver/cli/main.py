"""The commands of `reserver`: each is a function, or a group, in the module of its name.

A module is imported when its command is called, so `reserver --help` imports none of them.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer import completion as scripts

from reserver import DISTRIBUTION
from reserver.cli.help import App, CommandGroup, Deferred

scripts.completion_init()  # type: ignore[attr-defined]  # Shells call the command in forms of their own.

SUMMARIES = {
    "Reserve": {
        "create": "Create reservations, and wait until their holds are in force.",
        "validate": "Check files for errors, without a cluster.",
        "apply": "Create or change reservations so that they match files.",
        "update": "Change fields of a reservation; all other fields stay.",
        "edit": "Edit a reservation in your editor (KUBE_EDITOR, EDITOR, or vi).",
        "extend": "Change when reservations expire.",
        "skip": "Skip the next occurrence of recurring reservations.",
        "release": "Remove reservations, and return once they hold nothing.",
        "restore": "Create reservations again that were released by mistake, or when idle.",
        "wait": "Wait until reservations are in force, claimed, or over.",
    },
    "Look": {
        "get": "List reservations: all, by name, or by filter.",
        "describe": "Show all details of reservations.",
        "watch": "Print each reservation, and then each change as it happens.",
        "history": "Show reservations that are over, and who claimed them.",
        "report": "Show how much was held, for which owners, and how much stayed unused.",
        "top": "Show used, held and free room, and quotas.",
        "explain": "Explain why a pod has no node.",
        "ui": "Show nodes, reservations and their times on a page in your browser.",
        "doctor": "Check the connection, your rights, versions, clocks, the CRDs and the webhook.",
        "preflight": "Report what an upgrade, or a rollback, would change in this cluster.",
    },
    "Move and rebalance": {
        "move": "Move a pod to another node; hold room for its replacement first.",
        "drain": "Cordon a node and move its pods; evict none before all have a seat elsewhere.",
        "moves": "List moves of pods and their phases; pause and resume moves.",
        "rebalance": "Find pods that sit on the wrong node, by the policies of "
        "kubernetes-sigs/descheduler.",
    },
    "Run": {
        "serve": "Serve the scheduler extender until SIGTERM or Ctrl-C.",
        "migrate": "Move all reservations from one store to another; all keep holding.",
        "demo": "Watch reservations at work on an embedded cluster, then try it yourself.",
        "completion": "Print the shell script that completes commands, options and names.",
        "options": "Show the options for the connection, which most commands have.",
        "dump": "Print the state of a running Reserver as JSON, without secrets.",
    },
}
"""The first sentence of each command's help, by the heading that it stands under."""


def _load(name: str) -> Any:  # noqa: ANN401 - Typer's own
    module = import_module(f"reserver.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        group = App()
        group.command()(getattr(module, name))
    return typer.main.get_command(group)


class _Commands(CommandGroup):
    """All commands, each to be imported when it is called."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(**settings)
        for panel, summaries in SUMMARIES.items():
            for name, summary in summaries.items():
                self.commands[name] = Deferred(name, summary, panel, _load)


app = App(name="reserver", cls=_Commands)


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
