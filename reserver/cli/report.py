"""`reserver report`: capacity held over time, and how much of it nobody used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import dropwhile
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from reserver.cli import (
    completion,
    failure,
    history,
    output,
    report_sums,
    report_weeks,
    serialization,
    table,
    times,
)
from reserver.cli.connection import run
from reserver.cli.failure import WrongUsage
from reserver.cli.history import AboutOption
from reserver.cli.output import Report, TableOutputOption
from reserver.cli.report_sums import NO_OFFERS, Fate, Held, Sums, of_past, of_present
from reserver.cli.table import AnyCell, Cell, Row
from reserver.cli.target import Target
from reserver.cli.terminal import check_picture, progress, save_picture
from reserver.client import CallFailed, Client, Selection
from reserver.cluster.node import NODES
from reserver.settings.flags import flag

_PARTS = {
    Fate.USED: Cell("█", "cyan"),
    Fate.OPEN: Cell("▒", "yellow"),
    Fate.UNUSED: Cell("░", "red"),
}
"""They differ without colours, too."""

_WIDTH = 40
_BACK, _WEEKLY = "24h", "28d"
_NUMBERS = ("RESERVATIONS", "HELD", "USED", "UNUSED", "OPEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFlags:
    """The flags of `report`."""

    since: str = flag(
        "How far to look back, such as 8h or 7d. Default: 24h; with --weekly 28d.",
        default="",
        metavar="DURATION",
    )
    resource: str = flag(
        "Resource to report, such as memory or nvidia.com/gpu.",
        default="cpu",
        metavar="NAME",
        complete=completion.resources,
    )
    owners: bool = flag("Print a row for each owner, not for each namespace.", default=False)
    weekly: bool = flag(
        "Print the accounts of whole weeks, and their costs where prices are set.", default=False
    )
    picture: Path | None = flag("Also draw the report into a file: .svg or .html.", metavar="FILE")

    def back(self) -> timedelta:
        """Return how far to look back; refuse options that do not go together."""
        back = times.duration("--since", self.since or (_WEEKLY if self.weekly else _BACK))
        if not back:
            raise WrongUsage("--since: is zero; write for example 24h")
        check_picture(self.picture)
        if self.weekly and self.picture:
            raise WrongUsage("--picture: draws no accounts; write --weekly or --picture, not both")
        return back


def report(
    target: Target,
    flags: ReportFlags,
    namespace: AboutOption = "",
    form: TableOutputOption = Report.TABLE,
) -> None:
    """Show how much was held, for which owners, and how much stayed unused.

    The report covers existing reservations and the entries of `reserver history`. HELD is amount
    times time: two CPUs for three hours are six. USED was claimed in the end (if reusable: at any
    time), UNUSED expired or was removed unclaimed, OPEN is not claimed yet.

    --weekly counts a slot as CLAIMED while a pod has it, and the pod's request as USED. UNUSED is
    HELD less USED; USE is their ratio.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver report
        reserver report --since 7d --owners --namespace shop
        reserver report --weekly --owners
        reserver report --resource nvidia.com/gpu --picture gpus.svg
    """
    back = flags.back()
    run(target, lambda session: _report(session.client, flags, namespace, back, form))


async def _report(
    client: Client, flags: ReportFlags, namespace: str, back: timedelta, form: Report
) -> None:
    if flags.weekly:
        accounts = await report_weeks.fetch(client, namespace, datetime.now(UTC) - back)
        report_weeks.show(accounts, flags.resource, form, by_owner=flags.owners)
        return
    found = await fetch(client, flags.resource, namespace, back)
    _show(found, form, by_owner=flags.owners)
    if flags.picture is not None:
        _draw(found, flags.picture, by_owner=flags.owners)


@dataclass(frozen=True, slots=True)
class Period:
    """The data of a report.

    Attributes:
        resource: the resource.
        begin: the start of the period.
        end: the end of the period.
        held: the capacity held in the period.
    """

    resource: str
    begin: datetime
    end: datetime
    held: tuple[Held, ...]

    def sums(self, *, by_owner: bool) -> Mapping[tuple[str, ...], Sums]:
        """Return the sums by namespace or by owner."""
        return report_sums.summed(
            self.held,
            self.begin,
            self.end,
            lambda each: (each.namespace, each.owner) if by_owner else (each.namespace,),
        )

    def parts(self) -> list[tuple[datetime, dict[Fate, float]]]:
        """Return the average amount in each part of the time."""
        return report_sums.over_time(self.held, self.begin, self.end)


async def fetch(client: Client, resource: str, namespace: str, back: timedelta) -> Period:
    """Return the holds of a resource until now."""
    now = datetime.now(UTC)
    past = await history.fetch(client, "", namespace, now - back)
    async with progress("Listing reservations"):
        asked = client.list(Selection(owner_namespace=namespace))
        present = [each async for each in asked]
    is_whole = any(NODES in one.resources for one in past) or any(one.spec.nodes for one in present)
    offers = await _offers(client, resource) if is_whole and resource != NODES else NO_OFFERS
    held = [each for one in past for each in of_past(one, resource, offers)]
    held += [each for one in present for each in of_present(one, resource, now, offers)]
    return Period(resource, now - back, now, tuple(held))


async def _offers(client: Client, resource: str) -> dict[str, float]:
    """Return the allocatable of a resource, by node; empty for a caller without that right."""
    try:
        async with progress("Reading nodes"):
            return {
                node.node: report_sums.amount(resource, node.resources[resource].allocatable)
                async for node in client.capacity.nodes()
                if resource in node.resources
            }
    except CallFailed as exc:
        if failure.is_without_answer(exc):
            raise
        failure.report(f"whole nodes are left out (--resource {NODES} counts them): {exc.message}")
        return {}


def _show(found: Period, form: Report, *, by_owner: bool) -> None:
    """Print a report."""
    if form not in {Report.TABLE, Report.CSV}:
        output.document(document(found), form)
        return
    titles, rows = _sums(found, by_owner=by_owner)
    if form is Report.CSV:
        output.csv(titles, table.texts(rows))
        return
    if not rows:
        failure.report(f"no {found.resource} was held in that time")
        return
    typer.echo(_title(found))
    table.show(titles, rows, right=_NUMBERS)
    typer.echo()
    if sys.stdout.isatty():
        table.show(*_bars(found), right=_NUMBERS)
        table.legend(*(Cell(f"{part.text} {fate} ", part.style) for fate, part in _PARTS.items()))
    else:
        table.show(*_means(found))


def _draw(found: Period, path: Path, *, by_owner: bool) -> None:
    """Draw a report into a file: SVG or HTML, by its name."""

    def print_on(console: Console) -> None:
        console.print(_title(found), highlight=False)
        for titles, rows in (_sums(found, by_owner=by_owner), _bars(found)):
            console.print(table.drawn(titles, rows, right=_NUMBERS))
        for fate, part in _PARTS.items():
            console.print(f"{part.text} {fate}", style=part.style, highlight=False)

    save_picture(path, "reserver report", print_on)


def document(found: Period) -> dict[str, Any]:
    """Return a report as a program reads it."""
    return {
        "resource": found.resource,
        "unit": report_sums.unit(found.resource),
        "begin": serialization.show_moment(found.begin),
        "end": serialization.show_moment(found.end),
        "owners": [
            {
                "namespace": namespace,
                "owner": owner,
                "reservations": len(sums.reservations),
                "hours": {str(fate): round(hours, 3) for fate, hours in sums.hours.items()},
            }
            for (namespace, owner), sums in found.sums(by_owner=True).items()
        ],
        "overTime": [
            {
                "begin": serialization.show_moment(begin),
                **{str(f): round(v, 3) for f, v in mean.items()},
            }
            for begin, mean in found.parts()
        ],
    }


def _title(found: Period) -> str:
    begin, end = (f"{each:%Y-%m-%d %H:%M}" for each in (found.begin, found.end))
    unit = report_sums.unit(found.resource)
    return f"{found.resource} held from {begin} to {end} UTC, in {unit} × hours:"


def _sums(found: Period, *, by_owner: bool) -> tuple[tuple[str, ...], list[Row]]:
    titles = ("NAMESPACE", *(("OWNER",) if by_owner else ()), *_NUMBERS)
    rows: list[Row] = [
        [
            *who,
            str(len(sums.reservations)),
            report_sums.number(sums.held),
            *(report_sums.number(sums.hours[fate]) for fate in (Fate.USED, Fate.UNUSED, Fate.OPEN)),
        ]
        for who, sums in found.sums(by_owner=by_owner).items()
    ]
    return titles, rows


def _means(found: Period) -> tuple[tuple[str, ...], list[Row]]:
    titles = ("FROM", "HELD", "USED", "UNUSED", "OPEN")
    fates = (Fate.USED, Fate.UNUSED, Fate.OPEN)
    rows: list[Row] = [
        [
            _when(begin),
            report_sums.number(sum(mean.values())),
            *(report_sums.number(mean[fate]) for fate in fates),
        ]
        for begin, mean in _since_anything(found)
    ]
    return titles, rows


def _since_anything(found: Period) -> list[tuple[datetime, dict[Fate, float]]]:
    """Return the averages, from the first part of the time with a hold."""
    return list(dropwhile(lambda part: not any(part[1].values()), found.parts()))


def _bars(found: Period) -> tuple[tuple[str, ...], list[Row]]:
    parts = _since_anything(found)
    most = max(sum(mean.values()) for _, mean in parts) or 1.0
    rows: list[Row] = []
    for begin, mean in parts:
        bar: AnyCell = [
            Cell(part.text * round(mean[fate] / most * _WIDTH), part.style)
            for fate, part in _PARTS.items()
        ]
        rows.append([_when(begin), report_sums.number(sum(mean.values())), bar])
    return ("FROM", "HELD", ""), rows


def _when(moment: datetime) -> str:
    return f"{moment:%m-%d %H:%M}"
