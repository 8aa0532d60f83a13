"""`reserver extend`: changes when a reservation expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from reserver.cli import completion, failure, formatting, lookup, output
from reserver.cli.connection import Session, run
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.options import Output, OutputOption, Target
from reserver.cli.selection import NamespaceOption, SelectionFlags
from reserver.cli.serialization import read_moment
from reserver.client import ReservationInfo
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import in_hours, parse_duration


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
    form: OutputOption = Output.TABLE,
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
        client = session.client
        among = SelectionFlags(namespace=namespace).selection(session.namespace)

        async def extended(called: str) -> ReservationInfo:
            return await client.extend(called, until)

        changed = await lookup.by_name(client, name, extended, among)
        if output.is_for_programs(form):
            output.reservations([changed], form, alone=True)
        else:
            typer.echo(f"{name} extended: {formatting.one_line(changed, datetime.now(UTC))}")

    run(target, change)


def _until(ttl: str, expires_at: str) -> datetime | timedelta:
    if bool(ttl) == bool(expires_at):
        raise Failed(ExitStatus.USAGE, "--ttl, --expires-at: give one of them")
    flag = "--ttl" if ttl else "--expires-at"
    try:
        if ttl:
            return timedelta(seconds=parse_duration(in_hours(ttl)))
        return read_moment(expires_at)
    except InvalidInput as exc:
        raise Failed(ExitStatus.USAGE, f"{flag}: {exc}") from exc
