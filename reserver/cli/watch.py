"""`reserver watch`: reservations, and each change as it happens."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import typer

from reserver.cli import listing, output, serialization, table
from reserver.cli.connection import Session, run
from reserver.cli.options import SelectionFlags
from reserver.cli.output import Output, OutputOption
from reserver.cli.table import Cell, Row
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Change, ChangeKind, Client, ReservationInfo, Selection

_KINDS = {
    ChangeKind.ADDED: Cell("added", "green"),
    ChangeKind.MODIFIED: Cell("modified", "yellow"),
    ChangeKind.DELETED: Cell("deleted", "red"),
}
_WIDTHS = (8, 24, 19, 16, 5, 7)
"""Of a stream's columns, where the widest text is not known beforehand."""


def watch(target: Target, chosen: SelectionFlags, form: OutputOption = Output.TABLE) -> None:
    """Print each reservation, and then each change as it happens.

    The command resumes a broken connection and misses no change. `-o json` prints one object a
    line, `{"change", "reservation"}`. Stop with Ctrl-C. Exit status: as of `reserver get`.

    Examples:
        reserver watch --node worker-3
        reserver watch -n shop -o json
    """

    async def work(session: Session) -> None:
        await stream(session.client, chosen.selection(session.namespace), form)

    run(target, work)


async def follow(client: Client, selection: Selection, form: Output) -> None:
    """Keep a table up to date on a terminal; print each change elsewhere."""
    if not sys.stdout.isatty() or output.is_for_programs(form):
        await stream(client, selection, form)
        return
    await _reach(client, selection)
    from rich.live import Live

    known: dict[str, ReservationInfo] = {}
    with Live(auto_refresh=False) as live:

        def draw() -> None:
            rows = listing.rows([known[each] for each in sorted(known)], form)
            live.update(
                table.drawn(listing.columns(form), rows, right=listing.NUMBERS), refresh=True
            )

        ticking = asyncio.create_task(_each_second(draw))
        try:
            async for change in client.watch(selection):
                if change.kind is ChangeKind.DELETED:
                    known.pop(change.reservation.id, None)
                else:
                    known[change.reservation.id] = change.reservation
                draw()
        finally:
            ticking.cancel()


async def _each_second(draw: Callable[[], None]) -> None:
    """Draw again each second: each row has the time that is left."""
    while True:
        draw()
        await asyncio.sleep(1)


async def stream(client: Client, selection: Selection, form: Output) -> None:
    """Print each change, for ever.

    Raises:
        CallFailed: reserver cannot be reached; once it was, a connection that breaks is resumed.
    """
    await _reach(client, selection)
    if form in {Output.TABLE, Output.WIDE}:
        typer.echo(_padded(("CHANGE", *listing.columns(form))))
    async for change in client.watch(selection):
        _print_change(change, form)


async def _reach(client: Client, selection: Selection) -> None:
    """Call once: a watch waits for ever for a server that is not there."""
    async with progress("Connecting"):
        await anext(client.list(selection), None)


def _print_change(change: Change, form: Output) -> None:
    kind, reservation = change
    if form is Output.NAME:
        typer.echo(reservation.id)
    elif output.is_for_programs(form):
        shown = {"change": kind.lower(), "reservation": serialization.show(reservation)}
        output.item(shown, form)
    else:
        row = (_KINDS[kind], *listing.row(reservation, form, datetime.now(UTC)))
        typer.echo(_padded(row))


def _padded(row: Row) -> str:
    return table.line(row, [*_WIDTHS, *[0] * (len(row) - len(_WIDTHS))])
