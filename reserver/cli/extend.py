"""`reserver extend`: changes when reservations expire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import typer

from reserver.cli import failure, formatting, lookup, output, times
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failures, WrongUsage
from reserver.cli.options import NamesArgument, SelectionFlags, check_named
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import ReservationInfo
from reserver.settings.flags import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendFlags:
    """The flags of `extend`, without the selection's."""

    all_: bool = flag("Extend all that the options select.", default=False)
    ttl: str = flag(
        "Time from now, such as 30m, 2h or 7d; 0: no expiry.", default="", metavar="DURATION"
    )
    expires_at: str = flag(
        "Moment of expiry: 22:00, 'tomorrow 18:00', +2h, or RFC 3339.", default="", metavar="TIME"
    )

    def until(self) -> datetime | timedelta:
        """Return when reservations are to expire: a moment, or a time from now."""
        if bool(self.ttl) == bool(self.expires_at):
            raise WrongUsage("--ttl, --expires-at: give one of them")
        if self.ttl:
            return times.duration("--ttl", self.ttl)
        return times.future("--expires-at", self.expires_at, datetime.now().astimezone())


def extend(
    target: Target,
    chosen: SelectionFlags,
    flags: ExtendFlags,
    names: NamesArgument = None,
    form: OutputOption = Output.TABLE,
) -> None:
    """Change when reservations expire.

    Exit status: 0 done; 1 a reservation does not exist, or is refused; 2 wrong usage; 3 Reserver
    cannot be reached.

    Examples:
        reserver extend web-1 web-2 --ttl 2h
        reserver extend web-1 --expires-at 'tomorrow 18:00'
        reserver extend --all -n shop -l team=web --ttl 1d
    """
    check_named(names or [], chosen, every=flags.all_)
    until = flags.until()

    async def work(session: Session) -> None:
        called = names or await _ids(session, chosen)
        among = chosen.namespace if names else ""
        await _extend(session, called, among, until, form, alone=len(names or ()) == 1)

    run(target, work)


async def _ids(session: Session, chosen: SelectionFlags) -> list[str]:
    selection = chosen.selection(session.namespace)
    async with progress("Listing reservations"):
        return [each.id async for each in session.client.list(selection)]


async def _extend(
    session: Session,
    names: list[str],
    namespace: str,
    until: datetime | timedelta,
    form: Output,
    *,
    alone: bool,
) -> None:
    """Extend reservations one after the other; failures are independent."""

    async def extended(called: str) -> ReservationInfo:
        return await session.client.extend(called, until)

    changed: list[ReservationInfo] = []
    failures = Failures()
    for name in names:
        with failures.noted("" if alone else name):
            each = await lookup.by_name(session, name, extended, namespace)
            changed.append(each)
            if not output.is_for_programs(form):
                line = formatting.one_line(each, datetime.now().astimezone())
                typer.echo(f"{name} extended: {line}")
    if output.is_for_programs(form) and (changed or not alone):
        output.reservations(changed, form, alone=alone)
    elif not names:
        failure.report("no reservation is selected; see `reserver get`")
    failures.raise_all()
