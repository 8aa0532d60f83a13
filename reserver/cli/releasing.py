"""Releases reservations by name, or all that options select."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import typer

from reserver.cli import failure, listing, naming, output
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output
from reserver.cli.patience import patience
from reserver.cli.question import confirmed
from reserver.client import CallFailed, Client, Reservation, Selection

Released = tuple[str, Reservation | None]
"""What it is called, and what it was; None where no program is to be told."""


async def release_named(
    client: Client, names: Sequence[str], selection: Selection, form: Output
) -> None:
    """Release reservations by name or id, among those that are meant; failures are independent.

    Raises:
        Failed: some are not there, or refused.
    """

    async def release(name: str) -> Released:
        # Who may release it need not have the right to read it.
        was = await client.get(name) if output.is_for_programs(form) else None
        await client.release(name, missing_ok=False)
        return name, was

    def by_name(name: str) -> Awaitable[Released]:
        return naming.by_name(client, name, release, selection)

    await _each(names, by_name, form, alone=len(names) == 1)


async def release_chosen(client: Client, selection: Selection, form: Output, *, ask: bool) -> None:
    """Release all that are meant, each only as it was shown.

    Raises:
        Failed: the answer was no, or some are refused.
    """
    async with patience("Listing reservations"):
        found = [each async for each in client.list(selection)]
    if not found:
        listing.show(found, form)
        return
    if ask:
        listing.show(found, Output.TABLE)
        if not await confirmed(f"Release these {len(found)}?"):
            raise Failed(Status.REFUSED, "nothing released")
    before = {each.id: each for each in found}

    async def release(name: str) -> Released:
        await client.release(name, etag=before[name].etag)
        return name, before[name]

    await _each(before, release, form, alone=False)


async def _each(
    names: Iterable[str],
    release: Callable[[str], Awaitable[Released]],
    form: Output,
    *,
    alone: bool,
) -> None:
    """Release each, and say so: in a line as it is done, or to a program what they were."""
    were: list[Reservation] = []
    refused: list[Failed] = []
    try:
        for name in names:
            try:
                async with patience(f"Releasing {name}"):
                    called, was = await release(name)
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    raise
                refused.append(failure.of(exc, name))
                continue
            if not output.is_for_programs(form):
                typer.echo(f"{called} released")
            elif was is not None:
                were.append(was)
    finally:
        if were:
            output.reservations(were, form, alone=alone)
    failure.raise_all(refused)
