"""Bars: how much of something is taken, in the width of a column."""

from __future__ import annotations

from reserver.cli.table import Cell

USED, HELD, FREE = "cyan", "yellow", "bright_black"

_WIDTH = 20
TAKEN, KEPT, LEFT = "█", "▒", "░"
"""Without colours, too, what is used, held and free differ."""


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
        Cell(TAKEN * used_cells, USED),
        Cell(KEPT * held_cells, HELD),
        Cell(LEFT * free_cells, FREE),
    ]


def _cells(amount: int, whole: int, width: int) -> int:
    return round(max(amount, 0) * width / whole)
