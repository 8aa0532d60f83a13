"""`reserver release`: removes reservations by name, or all that options select."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated

import typer

from reserver.cli import listing, lookup, output
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failures, Refused, WrongUsage
from reserver.cli.options import NamesArgument, SelectionFlags, check_named
from reserver.cli.output import Output, OutputOption
from reserver.cli.table import counted
from reserver.cli.target import Target
from reserver.cli.terminal import can_ask, confirmed, progress
from reserver.client import Client, ReservationInfo, Selection

Released = tuple[str, ReservationInfo | None]
"""A name, and the reservation before its release; None if no program reads it."""


def release(
    target: Target,
    chosen: SelectionFlags,
    names: NamesArgument = None,
    every: Annotated[
        bool, typer.Option("--all", help="Release all that the options select. Asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Release without asking.")] = False,
    form: OutputOption = Output.TABLE,
) -> None:
    """Remove reservations, and return once they hold nothing.

    -o json and -o yaml print each reservation as it was before.

    Exit status: 0 released; 1 a reservation does not exist, is refused, or you said no; 2 wrong
    usage; 3 Reserver cannot be reached.

    Examples:
        reserver release web-1 web-2
        reserver release --all --node worker-3
        reserver release -l team=web -n shop
    """
    check_named(names or [], chosen, every=every)
    if not names and not yes and not (can_ask() and form is Output.TABLE):
        why = "--output is for programs" if can_ask() else "input or output is not a terminal"
        flag = "--all" if every else "--selector"
        raise WrongUsage(f"{flag}: {why}; pass --yes")
    run(target, lambda session: _release(session, names or [], chosen, form, yes=yes))


async def _release(
    session: Session, names: list[str], chosen: SelectionFlags, form: Output, *, yes: bool
) -> None:
    if names:
        await _release_named(session, names, chosen.namespace, form)
    else:
        selection = chosen.selection(session.namespace)
        await _release_chosen(session.client, selection, form, ask=not yes)


async def _release_named(
    session: Session, names: Sequence[str], namespace: str, form: Output
) -> None:
    """Release reservations by name or id (`lookup.by_name`); failures are independent."""

    async def by_name(name: str) -> Released:
        async def release(id_: str) -> Released:
            # Who may release it need not have the right to read it.
            was = await session.client.get(id_) if output.is_for_programs(form) else None
            await session.client.release(id_, missing_ok=False)
            return (id_ if id_.count("/") > 1 else name), was

        return await lookup.by_name(session, name, release, namespace)

    await _each(names, by_name, form, alone=len(names) == 1)


async def _release_chosen(client: Client, selection: Selection, form: Output, *, ask: bool) -> None:
    """Release all that are meant, each only as it was shown."""
    async with progress("Listing reservations"):
        found = [each async for each in client.list(selection)]
    if not found:
        listing.show(found, form)
        return
    if ask:
        listing.show(found, Output.TABLE)
        if not await confirmed(f"Release {counted(len(found), 'reservation')}?"):
            raise Refused("nothing released")
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
    """Release each and print a line, or for programs all reservations as they were."""
    were: list[ReservationInfo] = []
    failures = Failures()
    try:
        for name in names:
            with failures.noted(name):
                async with progress(f"Releasing {name}"):
                    called, was = await release(name)
                if not output.is_for_programs(form):
                    typer.echo(f"{called} released")
                elif was is not None:
                    were.append(was)
    finally:
        if were:
            output.reservations(were, form, alone=alone)
    failures.raise_all()
