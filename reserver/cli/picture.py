"""Saves a terminal's screen as SVG or HTML."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reserver.cli.failure import WrongUsage

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 110
_KINDS = {".svg", ".html"}


def check(path: Path | None) -> None:
    """Refuse a picture's name of a kind that cannot be drawn.

    Raises:
        Failed: it ends neither in .svg nor in .html.
    """
    if path is not None and path.suffix not in _KINDS:
        problem = f"{path} is neither .svg nor .html"
        raise WrongUsage(f"--picture: {problem}; end the name in one of them")


def save(path: Path, title: str, draw: Callable[[Console], None]) -> None:
    """Draw into a file: SVG or HTML, by its name.

    Raises:
        Failed: the file cannot be written.
    """
    from rich.console import Console

    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
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
