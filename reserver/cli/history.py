"""`reserver history`: what became of reservations that are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output, OutputOption, taking
from reserver.cli.target import Target
from reserver.errors import InvalidInput

if TYPE_CHECKING:
    from reserver.cli.connect import Session

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


@taking
def history(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name or id. Default: all reservations.", show_default=False
        ),
    ] = "",
    namespace: AboutOption = "",
    since: SinceOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show reservations that are over, and who claimed them.

    Reserver keeps this history for a week, within bounds (`serve --history-ttl`).

    Exit status: 0 shown; 1 nothing is known of that name, or refused; 2 wrong usage; 3 Reserver
    cannot be reached.

    Examples:
        reserver history
        reserver history web-move-1
        reserver history --namespace shop --since 2h -o json
    """
    begin = datetime.now(UTC) - within(since) if since else None

    async def tell(session: Session) -> None:
        from reserver.cli import history_view

        found = await history_view.fetch(session.client, name, namespace, begin)
        if name and not found:
            raise Failed(Status.REFUSED, f"nothing is known of a reservation {name!r} that is over")
        history_view.show(found, output)

    run(target, tell)


def within(text: str) -> timedelta:
    """Return the duration of `--since`."""
    from reserver.wire.times import in_hours, parse_duration

    try:
        return timedelta(seconds=parse_duration(in_hours(text)))
    except InvalidInput as exc:
        failure.end(Failed(Status.USAGE, f"--since: {exc.problem}; {exc.remedy}"))
