"""Reservations that are over, as rows and for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer

from reserver.cli import failure, listing, manifest, output, table, words
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.cli.table import Cell, Row
from reserver.client import Client, PastReservation, Selection
from reserver.reservations.terms import Outcome

COLUMNS = ("NAME", "OUTCOME", "ENDED", "HELD FOR", "CLAIMED", "BY", "NODE")
WIDE = (*COLUMNS, "ONE SLOT HELD", "OWNERS", "ID", "AUTHOR", "DESCRIPTION")

_STYLES = {Outcome.CLAIMED: "cyan", Outcome.EXPIRED: "yellow", Outcome.REMOVED: "dim"}


async def fetch(
    client: Client, name: str, namespace: str, since: datetime | None
) -> list[PastReservation]:
    """Return what is over, the oldest first."""
    async with patience("Asking what is over"):
        asked = client.history(name, owner_namespace=namespace, since=since)
        return [each async for each in asked]


async def show_all(client: Client, namespace: str, form: Output) -> None:
    """Print the reservations that there are, and what became of those that are over."""
    async with patience("Listing reservations"):
        asked = client.list(Selection(owner_namespace=namespace))
        present = [each async for each in asked]
    past = await fetch(client, "", namespace, None)
    if form in {Output.JSON, Output.YAML}:
        shown = {
            "reservations": [manifest.show(each) for each in present],
            "past": [document(each) for each in past],
        }
        output.document(shown, form)
        return
    listing.show(present, form)
    if form is not Output.NAME:
        typer.echo()
    show(past, form)


def show(found: list[PastReservation], form: Output) -> None:
    """Print what is over."""
    if form is Output.NAME:
        output.names([each.id for each in found])
    elif output.is_for_programs(form):
        output.document({"reservations": [document(each) for each in found]}, form)
    elif found:
        now = datetime.now(UTC)
        columns = WIDE if form is Output.WIDE else COLUMNS
        is_folded = form is not Output.WIDE
        table.show(columns, [_row(each, form, now) for each in found], is_folded=is_folded)
    else:
        failure.tell("nothing is over")


def _row(past: PastReservation, form: Output, now: datetime) -> Row:
    pods = [claim.pod or claim.uid for claim in past.claims]
    outcome = Cell(past.outcome, _STYLES[past.outcome]) if past.outcome else words.UNKNOWN
    row: Row = (
        past.name,
        outcome,
        f"{words.duration((now - past.ended).total_seconds())} ago",
        words.duration((past.ended - past.since).total_seconds()),
        f"{past.claimed}/{past.slots}",
        ", ".join(pods) or words.NOTHING,
        ", ".join(past.nodes) or words.NOTHING,
    )
    if form is Output.WIDE:
        held = ", ".join(f"{name} {text}" for name, text in sorted(past.resources.items()))
        row = (*row, held, past.owners, past.id, past.author or words.NOTHING)
        row = (*row, words.shortened(past.description))
    return row


def document(past: PastReservation) -> dict[str, Any]:
    """Return what is over as `-o json` prints it."""
    return {
        "name": past.name,
        "id": past.id,
        "outcome": str(past.outcome or words.UNKNOWN),
        "since": manifest.show_moment(past.since),
        "ended": manifest.show_moment(past.ended),
        "expiresAt": manifest.show_moment(past.expires_at) if past.expires_at else None,
        "ownerNamespace": past.owner_namespace,
        "owners": past.owners,
        "nodes": list(past.nodes),
        "resources": dict(past.resources),
        "slots": past.slots,
        "claimed": past.claimed,
        "claims": [
            {
                "pod": claim.pod,
                "uid": claim.uid,
                "node": claim.node,
                "at": manifest.show_moment(claim.at) if claim.at else None,
            }
            for claim in past.claims
        ],
        "description": past.description,
        "author": past.author,
    }
