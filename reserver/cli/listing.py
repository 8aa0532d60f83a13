"""Reservations as rows: once, or as they change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import typer

from reserver.cli import failure, fields, manifest, naming, output, table, words
from reserver.cli.failure import Failed
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.cli.table import Cell, Row
from reserver.client import CallFailed, Change, ChangeKind, Client, Reservation, Selection

COLUMNS = ("NAME", "PHASE", "NODE", "SLOTS", "CLAIMED", "ENDS IN")
WIDE = (*COLUMNS, "ONE SLOT HOLDS", "OWNERS", "ID", "AUTHOR", "DESCRIPTION")

_NUMBERS = ("SLOTS", "CLAIMED")
_KINDS = {
    ChangeKind.ADDED: Cell("added", "green"),
    ChangeKind.MODIFIED: Cell("modified", "yellow"),
    ChangeKind.DELETED: Cell("deleted", "red"),
}
_WIDTHS = (8, 24, 19, 16, 5, 7)
"""Of a stream's columns, where the widest text is not known beforehand."""


async def show_named(
    client: Client, names: Sequence[str], selection: Selection, form: Output
) -> None:
    """Print the reservations of some names or ids, among those that are meant.

    Raises:
        Failed: some are not there.
    """
    found, missing = await fetch(client, names, selection)
    if found:
        show(found, form, alone=len(names) == 1)
    failure.raise_all(missing)


async def show_all(
    client: Client, selection: Selection, form: Output, selector: str = "", sort_by: str = ""
) -> None:
    """Print the reservations that are meant (`fields.chosen`)."""
    fields.chosen((), selector, sort_by)  # Refuses what is malformed before anybody is asked.
    async with patience("Listing reservations"):
        found = [each async for each in client.list(selection)]
    show(fields.chosen(found, selector, sort_by), form)


async def follow(client: Client, selection: Selection, form: Output) -> None:
    """Keep a table up to date on a terminal; print each change elsewhere."""
    if not sys.stdout.isatty() or output.is_for_programs(form):
        await stream(client, selection, form)
        return
    await _reach(client, selection)
    from rich.live import Live

    known: dict[str, Reservation] = {}
    with Live(auto_refresh=False) as live:

        def draw() -> None:
            rows = _rows([known[each] for each in sorted(known)], form)
            live.update(table.drawn(_columns(form), rows, right=_NUMBERS), refresh=True)

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
    """Draw again as time passes: each row says how long is left."""
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
        typer.echo(_padded(("CHANGE", *_columns(form))))
    async for change in client.watch(selection):
        _print_change(change, form)


async def _reach(client: Client, selection: Selection) -> None:
    """Call once: a watch waits for ever for a server that is not there."""
    async with patience("Connecting"):
        await anext(client.list(selection), None)


async def fetch(
    client: Client, names: Sequence[str], selection: Selection
) -> tuple[list[Reservation], list[Failed]]:
    """Return the reservations of some names or ids, and why not the others.

    Raises:
        CallFailed: there is no answer.
    """
    found, missing = [], []
    async with patience("Asking for reservations"):
        for name in names:
            try:
                found.append(await naming.by_name(client, name, client.get, selection))
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    raise
                missing.append(failure.of(exc))
    return found, missing


def show(found: Sequence[Reservation], form: Output, *, alone: bool = False) -> None:
    """Print reservations; `alone` says that it is one which was asked for by its name."""
    if output.is_for_programs(form):
        output.reservations(found, form, alone=alone)
    elif found:
        is_folded = form is not Output.WIDE  # So many columns would be four characters wide.
        table.show(_columns(form), _rows(found, form), right=_NUMBERS, is_folded=is_folded)
    else:
        failure.tell("no reservations")


def _columns(form: Output) -> Sequence[str]:
    return WIDE if form is Output.WIDE else COLUMNS


def _rows(found: Iterable[Reservation], form: Output) -> list[Row]:
    now = datetime.now(UTC)
    return [_row(each, form, now) for each in found]


def _row(reservation: Reservation, form: Output, now: datetime) -> Row:
    row: Row = (
        words.short_name(reservation),
        words.phase(reservation),
        words.node(reservation),
        words.slots(reservation),
        words.claimed(reservation),
        words.ends_in(reservation, now),
    )
    if form is Output.WIDE:
        owners = words.shortened(words.owners(reservation), words.MOST_OWNERS)
        row = (*row, words.holds(reservation), owners, reservation.id)
        row = (
            *row,
            reservation.author or words.NOTHING,
            words.shortened(reservation.spec.description),
        )
    return row


def _print_change(change: Change, form: Output) -> None:
    kind, reservation = change
    if form is Output.NAME:
        typer.echo(reservation.id)
    elif output.is_for_programs(form):
        shown = {"change": kind.lower(), "reservation": manifest.show(reservation)}
        output.item(shown, form)
    else:
        row = (_KINDS[kind], *_row(reservation, form, datetime.now(UTC)))
        typer.echo(_padded(row))


def _padded(row: Row) -> str:
    return table.line(row, [*_WIDTHS, *[0] * (len(row) - len(_WIDTHS))])
