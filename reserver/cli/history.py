"""`reserver history`: reservations that are over, and their outcome."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from reserver.cli import failure, formatting, listing, output, serialization, table, times
from reserver.cli.connection import Session, run
from reserver.cli.failure import Refused, WrongUsage
from reserver.cli.output import ListOutputOption, Output
from reserver.cli.table import Cell, Row
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, PastReservation, Selection
from reserver.reservations.enums import Outcome

COLUMNS = ("NAME", "OUTCOME", "ENDED", "HELD FOR", "CLAIMED", "BY", "NODE")
WIDE = (*COLUMNS, "ONE SLOT HELD", "OWNERS", "ID", "AUTHOR", "DESCRIPTION")

_STYLES = {
    Outcome.CLAIMED: "cyan",
    Outcome.EXPIRED: "yellow",
    Outcome.IDLE: "yellow",
    Outcome.REMOVED: "dim",
}

SinceOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="Only reservations that ended in this time, such as 2h or 7d."
    ),
]
AboutOption = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", metavar="NAME", help="Only reservations for pods of this namespace."
    ),
]


def history(
    target: Target,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name or id. Default: all reservations.")
    ] = "",
    namespace: AboutOption = "",
    since: SinceOption = "",
    form: ListOutputOption = Output.TABLE,
) -> None:
    """Show reservations that are over, and who claimed them.

    Reserver keeps this history for a week, within bounds (`serve --history-ttl`). For a reusable
    reservation, CLAIMED and BY show the moment at which most slots were claimed, since Reserver
    started.

    Exit status: 0 shown; 1 no such reservation is known, or refused; 2 wrong usage; 3 Reserver
    cannot be reached.

    Examples:
        reserver history
        reserver history web-move-1
        reserver history --namespace shop --since 2h -o json
    """
    begin = datetime.now(UTC) - times.duration("--since", since) if since else None

    async def work(session: Session) -> None:
        found = await fetch(session.client, name, namespace, begin)
        if name and not found:
            raise Refused(f"there is no reservation {name!r} in the history")
        show(found, form)

    run(target, work)


async def fetch(
    client: Client, name: str, namespace: str, since: datetime | None
) -> list[PastReservation]:
    """Return past reservations, the oldest first."""
    async with progress("Asking for the history"):
        asked = client.history(name, owner_namespace=namespace, since=since)
        return [each async for each in asked]


async def show_all(client: Client, namespace: str, form: Output) -> None:
    """Print present reservations, then past ones with their outcome."""
    async with progress("Listing reservations"):
        asked = client.list(Selection(owner_namespace=namespace))
        present = [each async for each in asked]
    past = await fetch(client, "", namespace, None)
    if form is Output.CSV:
        raise WrongUsage("--all: a table of each cannot be csv; use `reserver history -o csv`")
    if output.is_for_programs(form) and form is not Output.NAME:
        shown = {
            "reservations": [serialization.show(each) for each in present],
            "past": [document(each) for each in past],
        }
        output.document(shown, form)
        return
    listing.show(present, form)
    if form is not Output.NAME:
        typer.echo()
    show(past, form)


def show(found: list[PastReservation], form: Output) -> None:
    """Print past reservations."""
    if form is Output.NAME:
        output.names([each.id for each in found])
    elif form is Output.CSV:
        now = datetime.now(UTC)
        output.csv(WIDE, table.texts(_row(each, Output.WIDE, now) for each in found))
    elif output.is_for_programs(form):
        output.document({"reservations": [document(each) for each in found]}, form)
    elif found:
        now = datetime.now(UTC)
        columns = WIDE if form is Output.WIDE else COLUMNS
        is_folded = form is not Output.WIDE
        table.show(columns, [_row(each, form, now) for each in found], is_folded=is_folded)
    else:
        failure.report("no reservation has ended")


def _row(past: PastReservation, form: Output, now: datetime) -> Row:
    pods = [claim.pod or claim.uid for claim in past.claims]
    outcome = Cell(past.outcome, _STYLES[past.outcome]) if past.outcome else formatting.UNKNOWN
    row: Row = (
        past.name,
        outcome,
        f"{formatting.duration((now - past.ended).total_seconds())} ago",
        formatting.duration((past.ended - past.since).total_seconds()),
        f"{past.claimed}/{past.slots}",
        ", ".join(pods) or formatting.NOTHING,
        ", ".join(past.nodes) or formatting.NOTHING,
    )
    if form is Output.WIDE:
        row = (
            *row,
            formatting.holds(past.resources),
            past.owners,
            past.id,
            past.author or formatting.NOTHING,
        )
        row = (*row, formatting.shortened(past.description))
    return row


def document(past: PastReservation) -> dict[str, Any]:
    """Return a past reservation as `-o json` prints it."""
    claims = [each._asdict() for each in past.claims]
    more = {"outcome": str(past.outcome or formatting.UNKNOWN), "claims": claims}
    shown: dict[str, Any] = output.in_camel_case(
        msgspec.to_builtins(past) | msgspec.to_builtins(more)
    )
    del shown["spec"]
    return shown
