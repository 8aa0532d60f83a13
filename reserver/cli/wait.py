"""`reserver wait`: waits until reservations are in force, claimed, or over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from reserver.cli import failure, formatting, lookup, output, times
from reserver.cli.connection import Session, run
from reserver.cli.failure import ExitStatus, Failed, Failures, Refused
from reserver.cli.formatting import QUOTA_EXCEEDED
from reserver.cli.options import NamespaceOption, RequiredNamesArgument
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import CallFailed, Client, Outcome, Phase, ReservationInfo

_NOT_THERE = "NO_SUCH_RESERVATION"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0


class Milestone(StrEnum):
    """A milestone in the life of a reservation."""

    IN_FORCE = "in-force"
    """The reservation holds, and its node has the room; or its owners have landed."""

    CLAIMED = "claimed"
    """Every slot is claimed."""

    ENDED = "ended"
    """The reservation has ended, for any reason."""

    @property
    def words(self) -> str:
        """The milestone as a sentence has it."""
        return self.replace("-", " ")


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
                    now = await reach(session.client, each, until, limit_s)
                reached.append(now or each)
                if not output.is_for_programs(form):
                    here = datetime.now().astimezone()
                    line = formatting.one_line(now, here) if now else "the reservation is gone"
                    typer.echo(f"{each.name} is {until.words}: {line}")
        if output.is_for_programs(form):
            output.reservations(reached, form, alone=len(names) == 1)
        failures.raise_all()

    run(target, work)


def is_reached(reservation: ReservationInfo, milestone: Milestone) -> bool | None:
    """Return whether a reservation has reached a milestone; None if it never will."""
    phase = reservation.phase
    if phase is Phase.CLAIMED:
        return milestone is not Milestone.ENDED or not reservation.spec.reusable
    if phase is Phase.EXPIRED:
        return True if milestone is Milestone.ENDED else None
    if phase is Phase.INVALID:
        return None
    return milestone is Milestone.IN_FORCE and phase is Phase.ACTIVE and reservation.is_backed


def was_reached(outcome: Outcome | None, milestone: Milestone) -> bool:
    """Return whether a reservation that is gone has reached a milestone."""
    return milestone is Milestone.ENDED or outcome is Outcome.CLAIMED


def starts_later(reservation: ReservationInfo, now: datetime) -> bool:
    """Return whether a reservation is to hold from a later moment on."""
    starts_at = reservation.spec.starts_at
    if reservation.occurrences:
        starts_at = reservation.occurrences[0].starts_at
    return starts_at is not None and starts_at > now


async def in_force(
    client: Client, made: Sequence[ReservationInfo], limit_s: float | None, failures: Failures
) -> list[ReservationInfo]:
    """Return reservations once they are in force, and note why some are not.

    Args:
        made: the reservations; one that starts later is not waited for.
        limit_s: how long to wait for each, in seconds; None for not at all, and then all are well.
    """
    after: list[ReservationInfo] = []
    for each in made:
        then = None
        is_later = starts_later(each, datetime.now(UTC))
        if limit_s is not None and is_later and each.reason == QUOTA_EXCEEDED:
            with failures.noted():
                problem = "holds nothing at its start, either, unless the quota admits it by then"
                raise Failed(ExitStatus.WAITING, f"{each.name}: {problem}")
        if limit_s is not None and not is_later:
            with failures.noted():
                async with progress(f"Waiting until {each.name} is in force"):
                    then = await reach(client, each, Milestone.IN_FORCE, limit_s, each.message)
        after.append(then or each)
    return after


async def reach(
    client: Client,
    called: ReservationInfo,
    milestone: Milestone,
    limit_s: float,
    reported: str = "",
) -> ReservationInfo | None:
    """Wait until a reservation reaches a milestone; return it, or None if it is gone by then.

    Args:
        called: the reservation, as it was last seen.
        milestone: what to wait for.
        limit_s: how long, in seconds.
        reported: the cause that the user has read already.

    Raises:
        Failed: it never will, or has not within `limit_s` seconds.
        CallFailed: there is no answer.
    """
    seen, pause_s = called, _FIRST_PAUSE_S
    try:
        async with asyncio.timeout(limit_s):
            while not (reached := is_reached(seen, milestone)):
                if reached is None:
                    problem = f"{called.name}: is {seen.phase}, and will never be {milestone.words}"
                    remedy = seen.message.rstrip(".") or "create another one"
                    raise Refused(f"{problem}: {remedy}")
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                seen = await client.get(called.id)
    except TimeoutError as exc:
        cause = "" if seen.message in {"", reported} else f": {seen.message.rstrip('.')}"
        problem = f"is not {milestone.words} yet{cause}; wait on with `reserver wait {seen.name}`"
        raise Failed(ExitStatus.WAITING, f"{called.name}: {problem}") from exc
    except CallFailed as exc:
        if exc.reason != _NOT_THERE:
            raise
        await _judge_gone(client, called, milestone, exc)
        return None
    return seen


async def _judge_gone(
    client: Client, called: ReservationInfo, milestone: Milestone, gone: CallFailed
) -> None:
    """Return if a reservation had reached a milestone before it went."""
    past = [each async for each in client.history(called.id)]
    if not was_reached(past[-1].outcome if past else None, milestone):
        raise failure.of(gone) from gone
