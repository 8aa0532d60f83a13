"""Options and arguments that commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from reserver.cli import completion
from reserver.cli.failure import WrongUsage
from reserver.cli.target import Target


class DryRun(StrEnum):
    """The kinds of dry runs."""

    NONE = "none"
    CLIENT = "client"
    """What would be sent."""

    SERVER = "server"
    """Whether it would fit."""


class Goal(StrEnum):
    """The goal of a plan."""

    POLICY = "policy"
    """The moves of a policy."""

    MAKE_ROOM = "make-room"
    """Room for the pending pods."""

    DEFRAGMENT = "defragment"
    """Nodes without pods."""


NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        autocompletion=completion.namespaces,
        help="Namespace of the pods. Default: the context's, or default.",
    ),
]

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name or id of the reservation.",
        autocompletion=completion.reservations,
    ),
]


def pod_of(text: str, metavar: str) -> tuple[str, str]:
    """Return namespace and name of a pod that an argument gives.

    Args:
        text: NAME or NAMESPACE/NAME; of NAME the namespace is empty.
        metavar: of the argument.

    Raises:
        Failed: it is none.
    """
    home, slash, name = text.rpartition("/")
    if not name or "/" in home or (slash and not home):
        raise WrongUsage(f"{metavar}: {text!r} is not a pod; write NAME or NAMESPACE/NAME")
    return home, name


def options(ctx: typer.Context, target: Target) -> None:  # noqa: ARG001 - they are shown
    """Show the options for the connection, which most commands have.

    Examples:
        reserver options
        reserver get --context staging
    """
    typer.echo(ctx.get_help())
