"""The entry point of `reserver`: `serve` starts without Typer and the other commands (`plain`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reserver.cli import interrupt

_PLUGIN = "kubectl-reserver"
_SERVE = "serve"
_USAGE = 2


def command(arguments: Sequence[str], program: str) -> Callable[[], object]:
    """Return what these arguments of a program ask for."""
    if arguments[:1] == [_SERVE]:
        from reserver.cli import plain
        from reserver.cli.serve import removed_setting, serve

        if problem := removed_setting(arguments[1:], os.environ):
            sys.stderr.write(f"reserver: {problem}\n")
            sys.exit(_USAGE)
        settings = plain.settings(arguments[1:], os.environ)
        if settings is not None:
            return partial(serve, settings)
    from reserver.cli.main import app

    return partial(app, list(arguments), prog_name=program)


def program_name(path: str) -> str:
    """Return what a user calls the program that was started as `path`."""
    return "kubectl reserver" if Path(path).name == _PLUGIN else "reserver"


def main() -> None:
    """Run the command line; output that cannot be written is an error like any other."""
    interrupt.heed()
    null = Path(os.devnull)
    sys.stdout = sys.stdout or null.open("w")  # Python has none for what the shell has closed.
    sys.stderr = sys.stderr or null.open("w")
    try:
        try:
            command(sys.argv[1:], program_name(sys.argv[0]))()
        finally:
            sys.stdout.flush()
    except OSError as exc:
        # What is still to be written would fail again when Python ends.
        os.dup2(os.open(null, os.O_WRONLY), sys.stdout.fileno())
        from reserver.cli import failure

        if not isinstance(exc, BrokenPipeError):
            failure.tell(f"standard output cannot be written: {exc.strerror or exc}")
        sys.exit(failure.Status.REFUSED)
