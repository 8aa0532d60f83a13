"""`reserver report --weekly`: held, claimed and used amounts by week, with costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import typer

from reserver.cli import failure, formatting, output, report_sums, serialization, table
from reserver.cli.output import Report
from reserver.cli.table import Row
from reserver.cli.terminal import progress
from reserver.client import Client, HoldAccount

_NUMBERS = ("HELD", "CLAIMED", "USED", "UNUSED", "USE")
_UNPRICED = 2 + len(_NUMBERS)


@dataclass(slots=True)
class _Sums:
    """Sums of accounts: amounts of one resource, and costs of all."""

    hours: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_NUMBERS[:-1], 0.0))
    cost: float | None = None
    unused_cost: float | None = None


async def fetch(client: Client, namespace: str, since: datetime) -> list[HoldAccount]:
    """Return the accounts of weeks that end after a moment."""
    async with progress("Reading accounts"):
        return [each async for each in client.capacity.accounts(namespace, since=since)]


def show(found: Sequence[HoldAccount], resource: str, form: Report, *, by_owner: bool) -> None:
    """Print accounts."""
    if form not in {Report.TABLE, Report.CSV}:
        output.document(document(found), form)
        return
    titles, rows = _table(found, resource, by_owner=by_owner)
    if form is Report.CSV:
        output.csv(titles, table.texts(rows))
    elif any(each.resource == resource for each in found):
        costs = "; COST is of all resources" if len(titles) > _UNPRICED + by_owner else ""
        unit = report_sums.unit(resource)
        typer.echo(f"{resource} by week (from Monday, UTC), in {unit} × hours{costs}:")
        table.show(titles, rows, right=titles[2 + by_owner :])
    else:
        failure.report(f"no {resource} was held in these weeks")


def document(found: Sequence[HoldAccount]) -> dict[str, Any]:
    """Return accounts as a program reads them."""
    return {
        "currency": next((each.currency for each in found), ""),
        "accounts": [
            {
                "week": serialization.show_moment(each.week),
                "namespace": each.namespace,
                "owner": each.owner,
                "resource": each.resource,
                "unit": report_sums.unit(each.resource),
                **{name.lower(): round(hours, 3) for name, hours in _hours(each).items()},
                "cost": _money(each.cost),
                "unusedCost": _money(each.unused_cost),
            }
            for each in found
        ],
    }


def _table(
    found: Sequence[HoldAccount], resource: str, *, by_owner: bool
) -> tuple[tuple[str, ...], list[Row]]:
    sums: dict[tuple[str, ...], _Sums] = {}
    for each in found:
        who = (f"{each.week:%Y-%m-%d}", each.namespace, *((each.owner,) if by_owner else ()))
        _add(sums.setdefault(who, _Sums()), each, resource)
    titles: tuple[str, ...] = ("WEEK", "NAMESPACE", *(("OWNER",) if by_owner else ()), *_NUMBERS)
    is_priced = any(each.cost is not None for each in found)
    if is_priced:
        currency = next((f" {each.currency}" for each in found if each.currency), "")
        titles = (*titles, f"COST{currency}", f"UNUSED COST{currency}")
    rows: list[Row] = [
        _row(who, each, is_priced=is_priced)
        for who, each in sums.items()
        if each.hours["HELD"] or each.cost is not None
    ]
    return titles, rows


def _add(sums: _Sums, each: HoldAccount, resource: str) -> None:
    if each.resource == resource:
        for name, hours in _hours(each).items():
            sums.hours[name] += hours
    if each.cost is not None and each.unused_cost is not None:
        sums.cost = (sums.cost or 0.0) + each.cost
        sums.unused_cost = (sums.unused_cost or 0.0) + each.unused_cost


def _row(who: tuple[str, ...], sums: _Sums, *, is_priced: bool) -> Row:
    hours = sums.hours
    use = f"{hours['USED'] / hours['HELD']:.0%}" if hours["HELD"] else formatting.NOTHING
    row = (*who, *map(report_sums.number, hours.values()), use)
    if not is_priced:
        return row
    costs = (sums.cost, sums.unused_cost)
    return (*row, *(formatting.NOTHING if cost is None else f"{cost:.2f}" for cost in costs))


def _hours(each: HoldAccount) -> dict[str, float]:
    amounts = (each.held, each.claimed, each.used, each.unused)
    size = report_sums.received(each.resource)
    return dict(zip(_NUMBERS[:-1], (amount / size for amount in amounts), strict=True))


def _money(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 4)
