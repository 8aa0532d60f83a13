"""The options that commands share."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from reserver.cli.connect import Target

_PANEL = "Connection"
_TARGET = "target"

CONNECTION = {
    "address": Annotated[
        str,
        typer.Option(
            envvar="RESERVER_ADDRESS",
            metavar="HOST:PORT",
            help="Where reserver serves gRPC. Default: a pod of it, through the kubeconfig.",
            rich_help_panel=_PANEL,
        ),
    ],
    "ca_file": Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_CA_FILE",
            help="PEM: the CA of a reserver that serves over TLS.",
            rich_help_panel=_PANEL,
        ),
    ],
    "client_certificate": Annotated[
        Path | None,
        typer.Option(
            help="PEM: a certificate, for a reserver that asks for one.", rich_help_panel=_PANEL
        ),
    ],
    "client_key": Annotated[
        Path | None, typer.Option(help="PEM: the key of that.", rich_help_panel=_PANEL)
    ],
    "token": Annotated[
        str,
        typer.Option(
            envvar="RESERVER_TOKEN",
            metavar="TOKEN",
            help="Who asks. Default: over TLS beyond loopback, the token of the kubeconfig's user.",
            rich_help_panel=_PANEL,
        ),
    ],
    "kubeconfig": Annotated[
        Path | None,
        typer.Option(help="Default: $KUBECONFIG, ~/.kube/config.", rich_help_panel=_PANEL),
    ],
    "context": Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of the kubeconfig. Default: its current one.",
            rich_help_panel=_PANEL,
        ),
    ],
    "reserver_namespace": Annotated[
        str,
        typer.Option(
            envvar="RESERVER_NAMESPACE",
            metavar="NAME",
            help="Where reserver's pods are.",
            rich_help_panel=_PANEL,
        ),
    ],
}
"""The options that make a `Target`, by the names of its fields."""


class Output(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Report(StrEnum):
    """How an answer is printed that is not a list of reservations."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="How to print it.", case_sensitive=False)
]
ReportOption = Annotated[
    Report, typer.Option("--output", "-o", help="How to print it.", case_sensitive=False)
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Of pods. Default: that of the kubeconfig's context, or default.",
    ),
]


def target_of(arguments: dict[str, Any]) -> Target:
    """Take the connection's options out of a command's arguments."""
    given = {name: arguments.pop(name) for name in CONNECTION if name in arguments}
    return Target(**{name: value for name, value in given.items() if value is not None})


def connecting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, instead of its parameter `target`, the options that make one."""
    own = inspect.signature(command, eval_str=True).parameters
    defaults = {field.name: field.default for field in dataclasses.fields(Target)}
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation
        )
        for name, annotation in CONNECTION.items()
    ]
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in own.values()
        if each.name != _TARGET
    ]

    @wraps(command)
    def run(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        command(target=target_of(arguments), **arguments)

    shown = [*parameters, *options]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run
