"""The terminal: questions to a person, messages while a call takes long, and pictures of a screen.

The event loop goes on meanwhile: Ctrl-C is heard as ever.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reserver.cli import failure
from reserver.cli.failure import WrongUsage

if TYPE_CHECKING:
    from rich.console import Console

    from reserver.client import CallFailed

_LONGEST_LINE = 4096
"""Most characters that a terminal passes on at once."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


def can_ask() -> bool:
    """Return whether a person sees the list that a question is about, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def confirmed(question: str) -> bool:
    """Return whether a person answers yes; an empty answer and the end of the input are a no."""
    while True:
        typer.echo(f"{question} [y/N]: ", nl=False, err=True)
        try:
            said = await typed_line()
        except asyncio.CancelledError:
            typer.echo(err=True)  # What comes next begins a line.
            raise
        if not said:
            typer.echo(err=True)
        answer = _ANSWERS.get(said.strip().lower())
        if answer is not None:
            return answer
        typer.echo("Error: answer y or n", err=True)


async def typed_line() -> str:
    """Return the next line that is typed, with its end; empty at the end of the input."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    descriptor = sys.stdin.fileno()

    def tell() -> None:
        loop.remove_reader(descriptor)
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(descriptor, tell)
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _LONGEST_LINE).decode(errors="replace")


_AFTER_S = 1.0


@asynccontextmanager
async def progress(words: str) -> AsyncIterator[None]:
    """Show a message on a terminal while a block takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    task = asyncio.create_task(_show(words))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@dataclass(slots=True)
class Retries:
    """Reports a repeated call on standard error, once, after a second.

    Attributes:
        address: where reserver is; empty for in the cluster of the kubeconfig.
        is_reported: whether it has.
    """

    address: str
    is_reported: bool = False

    def __call__(self, error: CallFailed, waited_s: float, left_s: float) -> None:
        """Report it, once."""
        if self.is_reported or waited_s < _AFTER_S:
            return
        self.is_reported = True
        where = f" at {self.address}" if self.address else ""
        until = f" for {left_s:.0f} more seconds" if isfinite(left_s) else ""
        failure.report(f"no answer from reserver{where} ({failure.cause(error)}); retrying{until}")


async def _show(words: str) -> None:
    await asyncio.sleep(_AFTER_S)
    from rich.console import Console

    with Console(stderr=True).status(words):
        await asyncio.Event().wait()


_PICTURE_WIDTH = 110
_PICTURES = {".svg", ".html"}


def check_picture(path: Path | None) -> None:
    """Refuse a picture's name of a kind that cannot be drawn.

    Raises:
        Failed: it ends neither in .svg nor in .html.
    """
    if path is not None and path.suffix not in _PICTURES:
        problem = f"{path} is neither .svg nor .html"
        raise WrongUsage(f"--picture: {problem}; end the name in one of them")


def save_picture(path: Path, title: str, draw: Callable[[Console], None]) -> None:
    """Draw into a file: SVG or HTML, by its name.

    Raises:
        Failed: the file cannot be written.
    """
    from rich.console import Console

    console = Console(record=True, width=_PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
    draw(console)
    if path.suffix == ".svg":
        # Rich names a font on the network; the reader's own will do.
        svg = console.export_svg(title=title)
        text = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    else:
        text = console.export_html()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise WrongUsage(f"--picture: {path} cannot be written: {exc.strerror}") from exc
    typer.echo(f"{path} written")
