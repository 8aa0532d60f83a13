"""`reserver wait`: waits until reservations are in force, claimed, or over."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from reserver.cli import completion, failure, formatting, lookup, milestone, output, times
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failed
from reserver.cli.milestone import Milestone
from reserver.cli.options import NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import CallFailed, ReservationInfo


def wait(
    target: Target,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Names or ids of reservations.",
            autocompletion=completion.reservations,
        ),
    ],
    until: Annotated[
        Milestone,
        typer.Option(
            "--for",
            help="in-force: it holds, and there is room; claimed: pods have all slots; ended: it "
            "holds nothing any more.",
            case_sensitive=False,
        ),
    ] = Milestone.IN_FORCE,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to wait for each.")
    ] = "10m",
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Wait until reservations are in force, claimed, or over.

    Exit status: 0 they are; 1 one never will be, or is not there; 2 wrong usage; 3 Reserver cannot
    be reached; 5 one is not yet.

    Examples:
        reserver wait web-1 && kubectl apply -f web.yaml
        reserver wait web-1 web-2 --for=claimed --timeout 1h
    """
    limit_s = times.duration("--timeout", timeout).total_seconds()

    async def work(session: Session) -> None:
        found, failed = await lookup.fetch(session, names, namespace)
        reached: list[ReservationInfo] = []
        for each in found:
            try:
                async with progress(f"Waiting until {each.name} is {until.words}"):
                    now = await milestone.reach(session.client, each, until, limit_s)
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    raise
                failed.append(failure.of(exc, each.name))
                continue
            reached.append(now or each)
            if not output.is_for_programs(form):
                line = (
                    formatting.one_line(now, datetime.now().astimezone()) if now else "it is gone"
                )
                typer.echo(f"{each.name} is {until.words}: {line}")
        if output.is_for_programs(form):
            output.reservations(reached, form, alone=len(names) == 1)
        failure.raise_all(failed)

    run(target, work)
