"""The tables of the documentation site, marked so that narrow screens can show rows as lists."""

from __future__ import annotations

import itertools
import re

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_TITLE = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_CELL = re.compile(r"<td(?P<more>[^>]*)>(?P<blank>\s*(?=</td>))?")
_FEWEST_COLUMNS = 3  # Fewer have room on any screen.


def titled(html: str) -> str:
    """Return a page with each column's title at the cells of tables of several columns.

    docs/site.css shows them; cells without text get none, so that it can leave them out.
    """
    return _TABLE.sub(lambda table: _titled(table[0]), html)


def _titled(table: str) -> str:
    titles = [re.sub("<[^>]+>", "", each).replace('"', "&quot;") for each in _TITLE.findall(table)]
    if len(titles) < _FEWEST_COLUMNS:
        return table
    among = itertools.cycle(titles)
    cells = _CELL.sub(lambda cell: f'<td{cell["more"]} data-title="{next(among)}">', table)
    return cells.replace("<table>", "<table data-stacked>", 1)
