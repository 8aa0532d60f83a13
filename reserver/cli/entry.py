"""The entry points of `reserver`, and of `kubectl reserver`, its plug-in of kubectl.

`reserver serve` starts without Typer and the other commands (`serve`). kubectl runs
`kubectl-reserver` for `kubectl reserver`. For completion it runs `kubectl_complete-reserver` with
the words so far, and reads one completion a line, then a directive of Cobra (kubectl,
pkg/cmd/plugin/plugin_completion.go). No command ends in a traceback for a character that the
terminal's encoding lacks.
"""

from __future__ import annotations

import codecs
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reserver.cli import interrupt

_PLUGIN = "kubectl-reserver"
_SERVE = "serve"
_USAGE = 2

_NO_FILES = 4
"""ShellCompDirectiveNoFileComp: the shell is not to offer files of its own."""


def command(arguments: Sequence[str], program: str) -> Callable[[], object]:
    """Return the command for the arguments of a program."""
    if arguments[:1] == [_SERVE]:
        from reserver.cli.serve import (
            of_services,
            read_plainly,
            removed_setting,
            serve,
            unknown_variable,
        )

        for name in list(of_services(os.environ)):
            del os.environ[name]
        problem = removed_setting(arguments[1:], os.environ)
        if problem := problem or unknown_variable(os.environ):
            sys.stderr.write(f"reserver: {problem}\n")
            sys.exit(_USAGE)
        settings = read_plainly(arguments[1:], os.environ)
        if settings is not None:
            return partial(serve, settings)
    from reserver.cli.main import app

    return partial(app, list(arguments), prog_name=program)


def program_name(path: str) -> str:
    """Return the user's name for the program that was started as `path`."""
    return "kubectl reserver" if Path(path).name == _PLUGIN else "reserver"


def main() -> None:
    """Run the command line; output that cannot be written is an error like any other."""
    interrupt.handle_signals()
    null = Path(os.devnull)
    sys.stdout = sys.stdout or null.open("w")  # Python has none for what the shell has closed.
    sys.stderr = sys.stderr or null.open("w")
    settle()
    try:
        given = arguments(sys.argv[1:])
    except ValueError as exc:
        sys.stderr.write(f"reserver: {exc}\n")
        sys.exit(_USAGE)
    try:
        try:
            command(given, program_name(sys.argv[0]))()
        finally:
            sys.stdout.flush()
    except OSError as exc:
        # What is still to be written would fail again when Python ends.
        os.dup2(os.open(null, os.O_WRONLY), sys.stdout.fileno())
        from reserver.cli import failure

        if not isinstance(exc, BrokenPipeError):
            failure.report(f"standard output cannot be written: {exc.strerror or exc}")
        sys.exit(failure.ExitStatus.REFUSED)


def complete() -> None:
    """Print completions of the last argument, one a line, as fish takes them."""
    interrupt.handle_signals()
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


_HANDLER = "reserver"
_CODEC = "reserver_ascii"
"""ASCII by a name of our own: into a stream of that name itself Click writes UTF-8."""

_ASCII = str.maketrans("█▒░·×…✓✗│─━┃╌⠋", "#=..x~+x|--|-*")
"""ASCII replacements of Reserver's own characters, each of the same width."""


def _substitute(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = text.translate(_ASCII)
    return plain.encode("ascii", "backslashreplace").decode(), error.end


def settle() -> None:
    """Have standard output and standard error take every character."""
    codecs.register_error(_HANDLER, _substitute)
    codecs.register(_codec)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_CODEC if is_ascii else None, errors=_HANDLER)


def _codec(name: str) -> codecs.CodecInfo | None:
    if name != _CODEC:
        return None
    found = codecs.lookup("ascii")
    return codecs.CodecInfo(
        found.encode,
        found.decode,
        incrementalencoder=found.incrementalencoder,
        incrementaldecoder=found.incrementaldecoder,
        name=_CODEC,
    )


def arguments(given: Sequence[str]) -> list[str]:
    """Return the arguments of a command as text, whatever the terminal's encoding is.

    Raises:
        ValueError: one is not UTF-8; the error says which.
    """
    read = []
    for each in given:
        try:
            read.append(os.fsencode(each).decode())
        except UnicodeError as exc:
            shown = os.fsencode(each).decode(errors="backslashreplace")
            raise ValueError(f"{shown}: is not UTF-8; write it in UTF-8") from exc
    return read
