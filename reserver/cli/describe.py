"""`reserver describe`: all details of reservations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import typer

from reserver.cli import formatting, lookup, serialization
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failures
from reserver.cli.options import NamespaceOption, RequiredNamesArgument
from reserver.cli.table import counted
from reserver.cli.target import Target
from reserver.client import Nodes, Phase, Policy, RecurringSchedule, ReservationInfo
from reserver.k8s.objects.times import show_duration
from reserver.printable import printable
from reserver.stores.codec.slot_rules import refilled_by_default

_WIDTH = 16


def describe(target: Target, names: RequiredNamesArgument, namespace: NamespaceOption = "") -> None:
    """Show all details of reservations.

    Exit status: 0 shown; 1 no such reservation, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver describe web-1
        reserver describe reserver-system/reservations/web-1
    """

    async def work(session: Session) -> None:
        await _show(session, names, namespace)

    run(target, work)


async def _show(session: Session, names: Sequence[str], namespace: str) -> None:
    """Describe the reservations of some names or ids (`lookup.by_name`)."""
    failures = Failures()
    found = await lookup.fetch(session, names, failures, namespace)
    now = datetime.now(UTC)
    for number, each in enumerate(found):
        if number:
            typer.echo()
        place = await lookup.find_in_line(session.client, each)
        for label, text in _lines(each, now, place):
            title = f"{label}:" if label else ""
            typer.echo(f"{typer.style(title.ljust(_WIDTH), bold=True)}{printable(text)}")
    failures.raise_all()


def _lines(
    reservation: ReservationInfo, now: datetime, place_in_line: str
) -> Iterator[tuple[str, str]]:
    yield from _head(reservation)
    if place_in_line:
        yield "In line", f"it {place_in_line}"
    if reservation.phase is Phase.INVALID:  # What it asks for cannot be read.
        return
    spec = reservation.spec
    yield "Node", formatting.node(reservation)
    if spec.placement:
        yield "Placement", ", ".join(f"{key} {value}" for key, value in spec.placement.items())
    yield from _holds(reservation)
    yield "Owners", ""
    for owner in spec.owners:
        yield "", f"  {formatting.owner(owner)}"
    yield from _times(reservation, now)
    if spec.retain:
        yield "Once over", "it stays until it is released"
    yield "Policy", _policy(spec.policy)
    if spec.preemptible:
        yield "Preemptible", f"by pods of a higher priority than {spec.priority or 0}"
    if spec.lend is not None:
        below = spec.lend.below_priority
        yield "Lent", f"to pods of a lower priority than {below}, until an owner comes"
    yield "Claims", "" if reservation.claims else "none"
    for claim in reservation.claims:
        yield "", f"  {claim.pod} ({claim.uid})"


def _head(reservation: ReservationInfo) -> Iterator[tuple[str, str]]:
    yield "Name", reservation.name
    yield "Id", reservation.id
    yield "Phase", formatting.phase(reservation).text
    if reservation.spec.description:
        yield "Description", reservation.spec.description
    if reservation.author:
        yield "Author", reservation.author
    if reservation.labels:
        yield "Labels", ", ".join(f"{key}={value}" for key, value in reservation.labels.items())
    if reservation.since is not None:
        yield "Since", serialization.show_moment(reservation.since.replace(microsecond=0))
    if reservation.message:
        yield "Because", reservation.message
    if reservation.assumes_namespace:
        home = reservation.id.partition("/")[0]
        whose = f"an owner names no namespace, so only pods of {home} may claim it"
        yield "No namespace", f"{whose}; write the namespace of its pods"


def _holds(reservation: ReservationInfo) -> Iterator[tuple[str, str]]:
    spec = reservation.spec
    if spec.nodes is not None:
        yield "Whole nodes", _whole(spec.nodes, len(reservation.claims))
        return
    yield "One slot holds", ""
    for resource, amount in formatting.amounts(spec.resources):
        yield "", f"  {resource} {amount}"
    yield "Slots", _slots(reservation)


def _whole(nodes: Nodes, pods: int) -> str:
    labels = ", ".join(f"{key}={value}" for key, value in nodes.selector.items())
    there = f"{counted(pods, 'pod')} of owners there"
    return f"{nodes.count}{f' with {labels}' if labels else ''}; {there}"


def _slots(reservation: ReservationInfo) -> str:
    taken = len(reservation.claims)
    if reservation.spec.refill:
        most = reservation.spec.refill_up_to or refilled_by_default(reservation.spec.slots)
        return f"{reservation.spec.slots} kept free, up to {most} in all; {taken} claimed"
    again = "; each is free again when its pod ends" if reservation.spec.reusable else ""
    return f"{reservation.spec.slots}, {taken} of them claimed{again}"


def _times(reservation: ReservationInfo, now: datetime) -> Iterator[tuple[str, str]]:
    spec = reservation.spec
    if spec.starts_at is not None:
        yield "Starts", serialization.show_moment(spec.starts_at)
    if spec.schedule is not None:
        yield from _occurrences(reservation, spec.schedule)
    elif spec.expires_at is None:
        yield "Ends", formatting.ends_in(reservation, now)
    else:
        left = formatting.ends_in(reservation, now)
        when = left if reservation.phase is Phase.EXPIRED or left == "over" else f"in {left}"
        yield "Ends", f"{serialization.show_moment(spec.expires_at)} ({when})"
    if spec.release_if_idle is not None:
        yield "If idle", _idle(spec.release_if_idle, reservation.idle_since)


def _occurrences(
    reservation: ReservationInfo, schedule: RecurringSchedule
) -> Iterator[tuple[str, str]]:
    zone = schedule.time_zone or "UTC"
    yield "Every", formatting.every(schedule)
    if schedule.suspend:
        return
    for number, (begin, end) in enumerate(reservation.occurrences):
        times = (_in_zone(each, zone) for each in (begin, end))
        yield "" if number else "Next", " to ".join(times)


def _idle(wait: timedelta, since: datetime | None) -> str:
    said = f"released once no pod has had a slot for {show_duration(wait)}"
    return f"{said}; none has since {serialization.show_moment(since)}" if since else said


def _policy(policy: Policy) -> str:
    if policy is Policy.REQUIRE:
        return "Require: owners may land nowhere else"
    return "Prefer: owners land elsewhere if their seat cannot be had"


def _in_zone(moment: datetime, zone: str) -> str:
    """Return a moment in RFC 3339, in UTC written as everywhere."""
    return moment.astimezone(ZoneInfo(zone)).isoformat().replace("+00:00", "Z")
