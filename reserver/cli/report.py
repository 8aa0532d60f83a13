"""`reserver report`: what was held over time, and how much of it nobody used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.history import AboutOption, within
from reserver.cli.options import Report, ReportOption, taking
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session


@taking
def report(
    target: Target,
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="How far to look back, such as 8h or 7d.")
    ] = "24h",
    resource: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Resource to report, such as memory or nvidia.com/gpu.",
            autocompletion=completion.resources,
        ),
    ] = "cpu",
    namespace: AboutOption = "",
    owners: Annotated[
        bool, typer.Option("--owners", help="Print a row for each owner, not for each namespace.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the report into a file: .svg or .html."),
    ] = None,
    output: ReportOption = Report.TABLE,
) -> None:
    """Show how much was held, for whom, and how much of it nobody used.

    The report covers existing reservations and those in `reserver history`. HELD is amount times
    time: two CPUs for three hours are six. USED was claimed in the end, UNUSED expired or was
    removed unclaimed, OPEN is not claimed yet.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver report
        reserver report --since 7d --owners --namespace shop
        reserver report --resource nvidia.com/gpu --picture gpus.svg
    """
    from reserver.cli import picture as pictures

    back = within(since)
    if not back:
        failure.end(Failed(Status.USAGE, "--since: no time at all; write for example 24h"))
    try:
        pictures.check(picture)
    except Failed as exc:
        failure.end(exc)

    async def tell(session: Session) -> None:
        from reserver.cli import report_view

        found = await report_view.fetch(session.client, resource, namespace, back)
        report_view.show(found, output, by_owner=owners)
        if picture is not None:
            report_view.draw(found, picture, by_owner=owners)

    run(target, tell)
