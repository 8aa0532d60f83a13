"""`reserver completion`: prints the script that a shell reads to complete commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer import completion as scripts

scripts.completion_init()  # type: ignore[attr-defined]  # The shells ask the command itself, in their own forms.

_FISH = """\
function __reserver_complete
    set --local typed (commandline --cut-at-cursor --current-process)
    set --local offered (env _RESERVER_COMPLETE=complete_fish \\
        _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS="$typed" reserver)
    if set --query offered[1]
        printf '%s\\n' $offered
    else
        __fish_complete_path (commandline --current-token)
    end
end

complete --command reserver --no-files --arguments '(__reserver_complete)'
"""
"""Typer's own script for fish starts the command twice for each Tab, which is felt."""


class Shell(StrEnum):
    """A shell that completes words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell,
        typer.Argument(
            metavar="SHELL", help="Your shell: bash, zsh or fish.", case_sensitive=False
        ),
    ],
) -> None:
    """Print the shell script that completes commands, options and names.

    Names of reservations, nodes and namespaces are completed if Reserver answers within two
    seconds, those of pods and PodMoves if the API server of the kubeconfig does. kubectl needs no
    script: it completes `kubectl reserver` by itself.

    Examples:
        source <(reserver completion bash)    # in ~/.bashrc
        source <(reserver completion zsh)     # in ~/.zshrc, after compinit
        reserver completion fish > ~/.config/fish/completions/reserver.fish
    """
    if shell is Shell.FISH:
        typer.echo(_FISH, nl=False)
        return
    typer.echo(
        scripts.get_completion_script(  # type: ignore[attr-defined]
            prog_name="reserver", complete_var="_RESERVER_COMPLETE", shell=shell.value
        )
    )
