"""`reserver skip`: leaves out the next occurrence of reservations that recur."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import typer

from reserver.cli import lookup, output, serialization
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failures, Refused
from reserver.cli.options import NamespaceOption, RequiredNamesArgument
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.client import ReservationInfo


def skip(
    target: Target,
    names: RequiredNamesArgument,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Skip the next occurrence of recurring reservations.

    An occurrence that is under way goes on.

    Exit status: 0 done; 1 a reservation does not exist, does not recur, or is refused; 2 wrong
    usage; 3 Reserver cannot be reached.

    Examples:
        reserver skip nightly
        reserver skip nightly weekly -n shop
    """

    async def skipped(session: Session, called: str) -> tuple[ReservationInfo, datetime]:
        info = await session.client.get(called)
        schedule, start = info.spec.schedule, _next_start(info, datetime.now(UTC))
        if schedule is None or start is None:
            lacks = "has no further occurrence" if schedule else "does not recur"
            raise Refused(f"{info.name}: {lacks}; `reserver release` ends it")
        # The start of one that would be under way still counts.
        since = datetime.now(UTC) - schedule.duration
        coming = [each for each in schedule.skip if each > since]
        spec = replace(info.spec, schedule=replace(schedule, skip=[*coming, start]))
        return await session.client.update(called, spec, etag=info.etag), start

    async def work(session: Session) -> None:
        changed: list[ReservationInfo] = []
        failures, skip_one = Failures(), partial(skipped, session)
        for name in names:
            with failures.noted("" if len(names) == 1 else name):
                after, start = await lookup.by_name(session, name, skip_one, namespace)
                changed.append(after)
                if not output.is_for_programs(form):
                    typer.echo(f"{name}: skips {serialization.show_moment(start)}")
        if output.is_for_programs(form) and changed:
            output.reservations(changed, form, alone=len(names) == 1)
        failures.raise_all()

    run(target, work)


def _next_start(info: ReservationInfo, now: datetime) -> datetime | None:
    """Return when the next occurrence starts that is not under way; None if none comes."""
    return next((each.starts_at for each in info.occurrences if each.starts_at > now), None)
