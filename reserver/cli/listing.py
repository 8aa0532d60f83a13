"""Reservations as rows, and the result of a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

import typer

from reserver.cli import failure, formatting, output, table
from reserver.cli.output import Output
from reserver.cli.table import Row
from reserver.client import ReservationInfo
from reserver.client.slots import of_slot

COLUMNS = ("NAME", "PHASE", "NODE", "SLOTS", "CLAIMED", "ENDS IN")
WIDE = (*COLUMNS, "ONE SLOT HOLDS", "OWNERS", "ID", "AUTHOR", "DESCRIPTION")

NUMBERS = ("SLOTS", "CLAIMED")


def show(
    found: Sequence[ReservationInfo], form: Output, *, alone: bool = False, is_titled: bool = True
) -> None:
    """Print reservations; `alone`: one that was selected by its name."""
    if form is Output.CSV:
        output.csv(WIDE, table.texts(rows(found, Output.WIDE)), is_titled=is_titled)
    elif output.is_for_programs(form):
        output.reservations(found, form, alone=alone)
    elif found:
        is_folded = form is not Output.WIDE
        shown = rows(found, form)
        table.show(columns(form), shown, right=NUMBERS, is_folded=is_folded, is_titled=is_titled)
    else:
        failure.report("no reservations")


def columns(form: Output) -> Sequence[str]:
    """Return the titles of a table of reservations."""
    return WIDE if form is Output.WIDE else COLUMNS


def rows(found: Iterable[ReservationInfo], form: Output) -> list[Row]:
    """Return a row for each reservation."""
    now, every = datetime.now(UTC), list(found)
    names = Counter(map(formatting.short_name, every))
    again = {name for name, number in names.items() if number > 1}
    return [row(each, form, now, again) for each in every]


def row(
    reservation: ReservationInfo, form: Output, now: datetime, ambiguous: Collection[str] = ()
) -> Row:
    """Return the row of a reservation; of an ambiguous name, its id."""
    name = formatting.short_name(reservation)
    cells: Row = (
        reservation.id if name in ambiguous else name,
        formatting.phase(reservation),
        formatting.node(reservation),
        formatting.slots(reservation),
        formatting.claimed(reservation),
        formatting.ends_in(reservation, now),
    )
    if form is Output.WIDE:
        owners = formatting.shortened(formatting.owners(reservation), formatting.MOST_OWNERS)
        cells = (*cells, formatting.holds(of_slot(reservation.spec)), owners, reservation.id)
        cells = (
            *cells,
            reservation.author or formatting.NOTHING,
            formatting.shortened(reservation.spec.description),
        )
    return cells


def report_change(name: str, word: str, reservation: ReservationInfo | None) -> None:
    """Print the result of a change; of an unchanged reservation, its name only."""
    state = ""
    if reservation is not None and word != "unchanged":
        state = f": {formatting.one_line(reservation, datetime.now().astimezone())}"
    typer.echo(f"{name} {word}{state}")
    if state and reservation is not None and not reservation.is_backed:
        failure.report(f"{name}: {reservation.message}")


def show_change(name: str, word: str, reservation: ReservationInfo, form: Output) -> None:
    """Print a changed reservation for programs, or the result, if there is one, for people."""
    if output.is_for_programs(form):
        output.reservations([reservation], form, alone=True)
    elif word:
        report_change(name, word, reservation)
