"""`reserver wait`: waits until reservations are in force, claimed, or over."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from reserver.cli import formatting, lookup, milestone, output, times
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failures
from reserver.cli.milestone import Milestone
from reserver.cli.options import NamespaceOption, RequiredNamesArgument
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import ReservationInfo


def wait(
    target: Target,
    names: RequiredNamesArgument,
    until: Annotated[
        Milestone,
        typer.Option(
            "--for",
            help="in-force: the reservation holds its room; claimed: pods have all slots; ended: "
            "it holds nothing any more.",
            case_sensitive=False,
        ),
    ] = Milestone.IN_FORCE,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Longest wait for each reservation.")
    ] = "10m",
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Wait until reservations are in force, claimed, or over.

    Exit status: 0 all are; 1 a reservation does not exist, or never will be; 2 wrong usage; 3
    Reserver cannot be reached; 5 the time is over, and a reservation is not there yet.

    Examples:
        reserver wait web-1 && kubectl apply -f web.yaml
        reserver wait web-1 web-2 --for=claimed --timeout 1h
    """
    limit_s = times.duration("--timeout", timeout).total_seconds()

    async def work(session: Session) -> None:
        failures = Failures()
        found = await lookup.fetch(session, names, failures, namespace)
        reached: list[ReservationInfo] = []
        for each in found:
            with failures.noted(each.name):
                async with progress(f"Waiting until {each.name} is {until.words}"):
                    now = await milestone.reach(session.client, each, until, limit_s)
                reached.append(now or each)
                if not output.is_for_programs(form):
                    here = datetime.now().astimezone()
                    line = formatting.one_line(now, here) if now else "the reservation is gone"
                    typer.echo(f"{each.name} is {until.words}: {line}")
        if output.is_for_programs(form):
            output.reservations(reached, form, alone=len(names) == 1)
        failures.raise_all()

    run(target, work)
