"""The entry point of `reserver`: `serve` starts without importing the other commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from reserver.cli import failure
from reserver.cli.failure import Status
from reserver.cli.help import App

_PLUGIN = "kubectl-reserver"
_SERVE = "serve"


def commands(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands that these arguments may mean."""
    if arguments[:1] != [_SERVE]:
        from reserver.cli.main import app

        return app
    from reserver.cli.serve import serve

    alone = App(name="reserver")
    alone.callback()(lambda: None)  # Without it the command would have no name of its own.
    alone.command(_SERVE)(serve)
    return alone


def program_name(path: str) -> str:
    """Return what a user calls the program that was started as `path`."""
    return "kubectl reserver" if Path(path).name == _PLUGIN else "reserver"


def main() -> None:
    """Run the command line; output that cannot be written is an error like any other."""
    null = Path(os.devnull)
    sys.stdout = sys.stdout or null.open("w")  # Python has none for what the shell has closed.
    sys.stderr = sys.stderr or null.open("w")
    try:
        try:
            commands(sys.argv[1:])(prog_name=program_name(sys.argv[0]))
        finally:
            sys.stdout.flush()
    except OSError as exc:
        # What is still to be written would fail again when Python ends.
        os.dup2(os.open(null, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(exc, BrokenPipeError):
            failure.tell(f"standard output cannot be written: {exc.strerror or exc}")
        sys.exit(Status.REFUSED)
