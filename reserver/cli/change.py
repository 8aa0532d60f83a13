"""`reserver extend` and `reserver release`: prolong reservations, or end them."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output, OutputOption, taking
from reserver.cli.selecting import (
    Chosen,
    NamesArgument,
    NamespaceOption,
    NodeOption,
    OwnerOption,
    PhaseOption,
    SelectorOption,
)
from reserver.cli.target import Target
from reserver.errors import InvalidInput

if TYPE_CHECKING:
    from reserver.cli.connect import Session
    from reserver.client import Reservation


@taking
def extend(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            help="Name or id of the reservation.", autocompletion=completion.reservations
        ),
    ],
    ttl: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Time from now, such as 30m, 2h or 7d; 0: no expiry."
        ),
    ] = "",
    expires_at: Annotated[
        str, typer.Option(metavar="TIME", help="Moment of expiry, in RFC 3339.")
    ] = "",
    namespace: NamespaceOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Change when a reservation expires.

    Exit status: 0 done; 1 refused, or not there; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver extend web-1 --ttl 2h
        reserver extend web-1 --expires-at 2030-01-31T10:00:00Z
    """
    try:
        until = _until(ttl, expires_at)
    except Failed as exc:
        failure.end(exc)

    async def change(session: Session) -> None:
        from reserver.cli import naming, words
        from reserver.cli import output as outputs

        client = session.client
        among = Chosen(namespace=namespace).selection(session.namespace)

        async def extended(called: str) -> Reservation:
            return await client.extend(called, until)

        changed = await naming.by_name(client, name, extended, among)
        if outputs.is_for_programs(output):
            outputs.reservations([changed], output, alone=True)
        else:
            typer.echo(f"{name} extended: {words.one_line(changed, datetime.now(UTC))}")

    run(target, change)


def _until(ttl: str, expires_at: str) -> datetime | timedelta:
    from reserver.cli.manifest import read_moment
    from reserver.wire.times import in_hours, parse_duration

    if bool(ttl) == bool(expires_at):
        raise Failed(Status.USAGE, "--ttl, --expires-at: give one of them")
    flag = "--ttl" if ttl else "--expires-at"
    try:
        if ttl:
            return timedelta(seconds=parse_duration(in_hours(ttl)))
        return read_moment(expires_at)
    except InvalidInput as exc:
        raise Failed(Status.USAGE, f"{flag}: {exc}") from exc


@taking
def release(
    target: Target,
    names: NamesArgument = None,
    every: Annotated[
        bool, typer.Option("--all", help="Release all that the options select. Asks first.")
    ] = False,
    node: NodeOption = "",
    owner: OwnerOption = "",
    namespace: NamespaceOption = "",
    phase: PhaseOption = None,
    selector: SelectorOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Release without asking.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove reservations, and return once they hold nothing.

    With -o json or yaml it prints what they were.

    Exit status: 0 released; 1 some are not there or refused, or you said no; 2 wrong usage;
    3 Reserver cannot be reached.

    Examples:
        reserver release web-1 web-2
        reserver release --all --node worker-3
    """
    chosen = Chosen(
        node=node,
        owner=owner,
        namespace=namespace,
        phases=tuple(phase or ()),
        labels=selector,
    )
    try:
        narrowed = replace(chosen, namespace="").is_narrow
        _check(names or [], every=every, narrowed=narrowed)
        if every and not yes and not (sys.stdin.isatty() and output is Output.TABLE):
            why = (
                "--output is for programs"
                if sys.stdin.isatty()
                else "standard input is not a terminal"
            )
            raise Failed(Status.USAGE, f"--all: {why}; pass --yes")
    except Failed as exc:
        failure.end(exc)
    run(target, lambda session: _release(session, names or [], chosen, output, yes=yes))


def _check(names: list[str], *, every: bool, narrowed: bool) -> None:
    if not names and not every:
        raise Failed(Status.USAGE, "NAME: is missing; give names, or --all")
    if names and (every or narrowed):
        raise Failed(Status.USAGE, "NAME: give names (and -n), or --all with its filters, not both")


async def _release(
    session: Session, names: list[str], chosen: Chosen, form: Output, *, yes: bool
) -> None:
    from reserver.cli import releasing

    selection = chosen.selection(session.namespace)
    if names:
        await releasing.release_named(session.client, names, selection, form)
    else:
        await releasing.release_chosen(session.client, selection, form, ask=not yes)
