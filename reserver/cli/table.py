"""Tables: drawn on a terminal, plain aligned columns elsewhere; and the bars in their columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from textwrap import wrap
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

_USED, _HELD, _FREE = Cell("█", "cyan"), Cell("▒", "yellow"), Cell("░", "bright_black")
"""They differ without colours, too."""

_BAR_WIDTH = 20
_NARROWEST = 4
_BETWEEN = 3


def show(
    columns: Sequence[str],
    rows: Iterable[Row],
    *,
    right: Iterable[str] = (),
    is_folded: bool = True,
    is_titled: bool = True,
) -> None:
    """Print rows under their columns' titles.

    Args:
        columns: titles in capital letters.
        rows: as many cells each as there are columns.
        right: the columns of numbers.
        is_folded: a table wider than the terminal is folded within its columns; else each row
            becomes lines, one for each column.
        is_titled: without titles the rows are plain everywhere.
    """
    if not is_titled:
        typer.echo("\n".join(plain(list(rows))))
    elif sys.stdout.isatty() and is_folded:
        from rich.console import Console

        Console(highlight=False).print(drawn(columns, rows, right=right))
    else:
        rows = list(rows)
        lines = plain([columns, *rows])
        width = get_terminal_size().columns
        if sys.stdout.isatty() and max(map(len, lines)) > width:
            lines = records(columns, rows, width)
        typer.echo("\n".join(lines))


def records(columns: Sequence[str], rows: Iterable[Row], width: int) -> list[str]:
    """Return a line for each cell, its column's title in front, wrapped between words."""
    margin = max(map(len, columns)) + len(_GAP)
    lines: list[str] = []
    for row in texts(rows):
        lines += [""] if lines else []
        for title, text in zip(columns, row, strict=True):
            more = wrap(
                text, max(width - margin, 1), break_long_words=False, break_on_hyphens=False
            )
            lines += [f"{f'{title}:':<{margin}}{(more or [''])[0]}".rstrip()]
            lines += [f"{'':<{margin}}{each}" for each in more[1:]]
    return lines


def texts(rows: Iterable[Row]) -> list[list[str]]:
    """Return the text of each cell."""
    return [list(map(_text, row)) for row in rows]


def plain(rows: Sequence[Row]) -> list[str]:
    """Return rows as lines with aligned columns, nothing cut off."""
    widths = [max(len(_text(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return [line(row, widths) for row in rows]


def line(row: Row, widths: Sequence[int]) -> str:
    """Return a row as a line with columns of at least these widths; the last is not padded."""
    texts = map(_text, row)
    return _GAP.join(f"{t:<{width}}" for t, width in zip(texts, widths, strict=True)).rstrip()


def drawn(columns: Sequence[str], rows: Iterable[Row], *, right: Iterable[str] = ()) -> Table:
    """Return rows as a table of Rich; arguments as in `show`."""
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
    """Print the legend of a table's colours."""
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text.assemble("\n", *parts))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 problem`` or ``2 problems``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def bar(total: int, used: int, held: int, width: int = _BAR_WIDTH) -> list[Cell]:
    """Return a bar with its used, held and free parts.

    Args:
        total: the amount of the whole bar; a larger amount is drawn as full.
        used: the used amount, in the same unit.
        held: the held amount.
        width: the width of the whole bar, in characters.
    """
    whole = max(total, used + held, 1)
    used_cells = _cells(used, whole, width)
    held_cells = min(_cells(used + held, whole, width), width) - used_cells
    if held > 0 and held_cells == 0:  # What is held is what the command is about.
        held_cells, used_cells = 1, min(used_cells, width - 1)
    free_cells = width - used_cells - held_cells
    return [_times(used_cells, _USED), _times(held_cells, _HELD), _times(free_cells, _FREE)]


def fitting(bars: int, others: Sequence[int], most: int = _BAR_WIDTH) -> int:
    """Return the width of bars next to other columns, so that a row fits the terminal."""
    from rich.console import Console

    taken = sum(others) + _BETWEEN * (bars + len(others) - 1)
    return min(most, max(_NARROWEST, (Console().width - taken) // bars))


def bar_legend() -> None:
    """Print the legend of bars."""
    words = ((_USED, "used "), (_HELD, "held "), (_FREE, "free"))
    legend(*(Cell(f"{part.text} {word}", part.style) for part, word in words))


def _times(count: int, part: Cell) -> Cell:
    return Cell(part.text * count, part.style)


def _cells(amount: int, whole: int, width: int) -> int:
    return round(max(amount, 0) * width / whole)
