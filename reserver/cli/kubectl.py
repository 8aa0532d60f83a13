"""`kubectl reserver`: the same command as a plug-in of kubectl.

kubectl runs `kubectl-reserver` for `kubectl reserver`. For completion it runs
`kubectl_complete-reserver` with the words so far, and reads one completion a line, then a directive
of Cobra (kubectl, pkg/cmd/plugin/plugin_completion.go).
"""

from __future__ import annotations

import os
import shlex
import sys

from reserver.cli import interrupt

_NO_FILES = 4
"""ShellCompDirectiveNoFileComp: the shell is not to offer files of its own."""


def complete() -> None:
    """Print completions of the last argument, one a line, as fish takes them."""
    interrupt.heed()
    import typer

    from reserver.cli.main import app

    *words, incomplete = sys.argv[1:] or [""]
    line = shlex.join(["reserver", *words])
    os.environ["_RESERVER_COMPLETE"] = "complete_fish"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    os.environ["_TYPER_COMPLETE_ARGS"] = f"{line} {shlex.quote(incomplete) if incomplete else ''}"
    try:
        app(prog_name="reserver")
    except SystemExit:
        typer.echo(f":{_NO_FILES}")
