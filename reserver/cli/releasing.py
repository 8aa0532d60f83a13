"""What `reserver release` does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from reserver.cli import failure, listing
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.client import CallFailed, Client, Selection


async def release_named(client: Client, names: Sequence[str]) -> None:
    """Release reservations by name or id; failures are independent.

    Raises:
        Failed: some are not there, or refused.
    """
    await _release(client, ((name, "") for name in names), missing_ok=False)


async def release_chosen(client: Client, selection: Selection, *, ask: bool) -> None:
    """Release all that are meant, each only as it was shown.

    Raises:
        Failed: the answer was no, or some are refused.
    """
    async with patience("Listing reservations"):
        found = [each async for each in client.list(selection)]
    if not found:
        failure.tell("no reservations")
        return
    if ask:
        listing.show(found, Output.TABLE)
        if not typer.confirm(f"Release these {len(found)}?", err=True):
            raise Failed(Status.REFUSED, "nothing released")
    await _release(client, ((each.id, each.etag) for each in found), missing_ok=True)


async def _release(client: Client, which: Iterable[tuple[str, str]], *, missing_ok: bool) -> None:
    refused = []
    for name, etag in which:
        try:
            async with patience(f"Releasing {name}"):
                await client.release(name, etag=etag, missing_ok=missing_ok)
        except CallFailed as exc:
            if failure.is_without_answer(exc):
                raise
            refused.append(failure.of(exc, name))
        else:
            typer.echo(f"{name} released")
    failure.raise_all(refused)
