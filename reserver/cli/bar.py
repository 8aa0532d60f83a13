"""Bars for table columns: how much of something is taken."""

from __future__ import annotations

from collections.abc import Sequence

from reserver.cli import table
from reserver.cli.table import Cell

_USED, _HELD, _FREE = Cell("█", "cyan"), Cell("▒", "yellow"), Cell("░", "bright_black")
"""They differ without colours, too."""

_WIDTH = 20
_NARROWEST = 4
_BETWEEN = 3


def bar(total: int, used: int, held: int, width: int = _WIDTH) -> list[Cell]:
    """Return a bar: what is used, what is held, what is free.

    Args:
        total: what the whole bar stands for; all is drawn as full where it is exceeded.
        used: what is used of it, in the same unit.
        held: what is held of it.
        width: of the whole bar, in characters.
    """
    whole = max(total, used + held, 1)
    used_cells = _cells(used, whole, width)
    held_cells = min(_cells(used + held, whole, width), width) - used_cells
    if held > 0 and held_cells == 0:  # What is held is what the command is about.
        held_cells, used_cells = 1, min(used_cells, width - 1)
    free_cells = width - used_cells - held_cells
    return [
        _times(used_cells, _USED),
        _times(held_cells, _HELD),
        _times(free_cells, _FREE),
    ]


def fitting(bars: int, others: Sequence[int], most: int = _WIDTH) -> int:
    """Return the width of bars beside columns of other widths, so that a row fits the terminal."""
    from rich.console import Console

    taken = sum(others) + _BETWEEN * (bars + len(others) - 1)
    return min(most, max(_NARROWEST, (Console().width - taken) // bars))


def legend() -> None:
    """Print under a table what the parts of its bars mean."""
    words = ((_USED, "used "), (_HELD, "held "), (_FREE, "free"))
    table.legend(*(Cell(f"{part.text} {word}", part.style) for part, word in words))


def _times(count: int, part: Cell) -> Cell:
    return Cell(part.text * count, part.style)


def _cells(amount: int, whole: int, width: int) -> int:
    return round(max(amount, 0) * width / whole)
