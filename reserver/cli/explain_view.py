"""An explanation as a person reads it."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reserver.cli.words import duration

_PLAIN_WIDTH = 200
"""Columns where there is no terminal to ask."""

_MOST_LINES = 20


def show(explanation: dict[str, Any]) -> None:
    """Print an explanation as `Explain` and `GET /explain/NAMESPACE/POD` give it."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    console.print(Text.assemble((explanation["pod"], "bold"), ": ", explanation["summary"]))
    if explanation["exempt"]:
        console.print("Its priority is so high that no hold keeps it from anything.")
    if explanation["reasons"]:
        console.print(_reasons(explanation["reasons"]))
    if explanation["in_the_way"]:
        more = explanation["more_in_the_way"]
        console.print(_holds("in its way", explanation["in_the_way"], more))
    if explanation["owns"]:
        console.print(_holds("held for it", explanation["owns"], 0))


def _reasons(reasons: list[dict[str, Any]]) -> Table:
    table = _table("nodes", "reason", "such as")
    table.columns[0].justify = "right"
    for reason in reasons:
        examples = ", ".join(reason["examples"])
        more = ", …" if reason["nodes"] > len(reason["examples"]) else ""
        table.add_row(str(reason["nodes"]), Text(reason["reason"]), Text(examples + more))
    return table


def _holds(title: str, holds: list[dict[str, Any]], more: int) -> Table:
    table = _table(title, "node", "ends in")
    for hold in holds[:_MOST_LINES]:
        left = duration(hold["seconds_left"])
        table.add_row(Text(hold["reservation"]), Text(hold["node"]), left)
    more += max(0, len(holds) - _MOST_LINES)
    if more:
        table.add_row(f"… and {more} more", "", "")
    return table


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table
