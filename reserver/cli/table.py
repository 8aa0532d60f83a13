"""Tables: drawn on a terminal, plain aligned columns anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from reserver.printable import printable

if TYPE_CHECKING:
    from rich.table import Table


class Cell(NamedTuple):
    """A text with a style that a terminal shows, in the words of Rich."""

    text: str
    style: str = ""


AnyCell = str | Cell | list[Cell]
"""Several cells in a list stand side by side."""

Row = Sequence[AnyCell]

_GAP = "   "


def show(
    columns: Sequence[str],
    rows: Iterable[Row],
    *,
    right: Iterable[str] = (),
    is_folded: bool = True,
) -> None:
    """Print rows under their columns' titles.

    Args:
        columns: titles in capital letters.
        rows: as many cells each as there are columns.
        right: the columns of numbers.
        is_folded: what is wider than a terminal is folded within its columns, not at its edge.
    """
    if sys.stdout.isatty() and is_folded:
        from rich.console import Console

        Console(highlight=False).print(drawn(columns, rows, right=right))
    else:
        typer.echo("\n".join(plain([columns, *rows])))


def plain(rows: Sequence[Row]) -> list[str]:
    """Return rows as lines with aligned columns, nothing cut off."""
    widths = [max(len(_text(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return [line(row, widths) for row in rows]


def line(row: Row, widths: Sequence[int]) -> str:
    """Return a row as a line with columns of at least these widths; the last is not padded."""
    texts = map(_text, row)
    return _GAP.join(f"{t:<{width}}" for t, width in zip(texts, widths, strict=True)).rstrip()


def drawn(columns: Sequence[str], rows: Iterable[Row], *, right: Iterable[str] = ()) -> Table:
    """Return rows as a table of Rich; the arguments are those of `show`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    numbers = set(right)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for title in columns:
        table.add_column(title, justify="right" if title in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text.assemble(*_parts(cell)) for cell in row))
    return table


def _parts(cell: AnyCell) -> list[Cell]:
    if isinstance(cell, str):
        return [Cell(printable(cell))]
    parts = [cell] if isinstance(cell, Cell) else cell
    return [Cell(printable(part.text), part.style) for part in parts]


def _text(cell: AnyCell) -> str:
    return "".join(part.text for part in _parts(cell))


def legend(*parts: Cell) -> None:
    """Print under a table what its colours mean."""
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text.assemble("\n", *parts))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 problem`` or ``2 problems``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
