"""`reserver completion`: what a shell has to read to complete the command's words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer import completion as scripts

scripts.completion_init()  # type: ignore[attr-defined]  # The shells ask the command itself, in their own forms.


class Shell(StrEnum):
    """A shell that completes words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", case_sensitive=False)
    ],
) -> None:
    """Print the script that completes commands, options, and names of the cluster.

    Names of reservations, nodes and namespaces are completed if reserver answers within two
    seconds. kubectl needs no script: it completes `kubectl reserver` by itself.

    Examples:
        source <(reserver completion bash)    # in ~/.bashrc
        source <(reserver completion zsh)     # in ~/.zshrc, after compinit
        reserver completion fish > ~/.config/fish/completions/reserver.fish
    """
    typer.echo(
        scripts.get_completion_script(  # type: ignore[attr-defined]
            prog_name="reserver", complete_var="_RESERVER_COMPLETE", shell=shell.value
        )
    )
