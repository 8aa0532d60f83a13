"""`reserver apply --prune`: releases what the labels select and the files no longer have."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import typer

from reserver.cli import listing, output
from reserver.cli.create_requests import NewReservation
from reserver.cli.failure import Failures, Refused, WrongUsage
from reserver.cli.output import Output
from reserver.cli.terminal import confirmed, progress
from reserver.client import Client, ReservationInfo, Selection
from reserver.errors import InvalidInput
from reserver.k8s.objects import selectors


def check(selector: str, *, can_ask: bool) -> None:
    """Refuse a pruning that would not say what it may release, or that nobody can confirm.

    Raises:
        Failed: an option is missing or malformed.
    """
    if not selector:
        raise WrongUsage("--prune: releases what labels select; give them, e.g. -l team=shop")
    try:
        selectors.parse_selector(selector)
    except InvalidInput as exc:
        raise WrongUsage(f"--selector: {exc}") from exc
    if not can_ask:
        raise WrongUsage("--prune: nobody can be asked here; pass --yes or --dry-run")


def surplus(
    found: Sequence[ReservationInfo],
    wanted: Sequence[NewReservation],
    applied: Sequence[ReservationInfo],
) -> list[ReservationInfo]:
    """Return which of the selected reservations no file has.

    Only namespaces of the files count, so a folder of one team prunes nothing of another.

    Args:
        found: those that the labels select.
        wanted: what the files ask for.
        applied: what is there of that.
    """
    kept = {each.id for each in applied} | {f"{one.namespace}/{one.name}" for one in wanted}
    homes = {_home(each) for each in applied} | {one.namespace for one in wanted}
    return [each for each in found if each.id not in kept and _home(each) in homes]


def _home(reservation: ReservationInfo) -> str:
    return reservation.id.partition("/")[0]


async def selected(client: Client, selector: str) -> list[ReservationInfo]:
    """Return the reservations that labels select."""
    async with progress("Listing reservations"):
        return [each async for each in client.list(Selection(label_selector=selector))]


async def release(
    client: Client, over: Collection[ReservationInfo], form: Output, *, ask: bool, dry_run: bool
) -> None:
    """Release reservations, each only as it was listed.

    Raises:
        Failed: the answer was no, or some are refused.
    """
    if ask and over and not dry_run:
        listing.show(list(over), Output.TABLE)
        if not await confirmed(f"Release these {len(over)}, which no file has?"):
            raise Refused("nothing pruned")
    failures = Failures()
    for each in over:
        with failures.noted(each.id):
            if not dry_run:
                await client.release(each.id, etag=each.etag)
            if not output.is_for_programs(form):
                typer.echo(f"{each.id} pruned{' (dry run)' if dry_run else ''}")
    failures.raise_all()
