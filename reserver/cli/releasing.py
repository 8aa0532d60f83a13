"""Releases reservations by name, or all that options select."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import typer

from reserver.cli import failure, listing, naming
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.client import CallFailed, Client, Selection


async def release_named(client: Client, names: Sequence[str], selection: Selection) -> None:
    """Release reservations by name or id, among those that are meant; failures are independent.

    Raises:
        Failed: some are not there, or refused.
    """

    async def release(name: str) -> str:
        await client.release(name, missing_ok=False)
        return name

    await _each(names, lambda name: naming.by_name(client, name, release, selection))


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
    etags = {each.id: each.etag for each in found}

    async def release(name: str) -> str:
        await client.release(name, etag=etags[name])
        return name

    await _each(etags, release)


async def _each(names: Iterable[str], release: Callable[[str], Awaitable[str]]) -> None:
    """Release each; `release` returns what it is called."""
    refused = []
    for name in names:
        try:
            async with patience(f"Releasing {name}"):
                called = await release(name)
        except (CallFailed, Failed) as exc:
            if failure.is_without_answer(exc):
                raise
            refused.append(failure.of(exc, name))
        else:
            typer.echo(f"{called} released")
    failure.raise_all(refused)
