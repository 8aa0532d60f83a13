"""Reservations as `reserver top reservations` shows them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reserver.cli import failure, output, table, words
from reserver.cli.bar import bar
from reserver.cli.options import Report
from reserver.cli.patience import patience
from reserver.cli.table import AnyCell, Row
from reserver.client import Client, NodeCapacity, Reservation, Selection
from reserver.cluster import quantity

_PERCENT = 100
_BAR = 10
"""Characters: with it, most tables fit into 80 columns."""


@dataclass(frozen=True, slots=True)
class _Holding:
    """What a reservation holds now.

    Attributes:
        reservation: which one.
        held: by resource, in the unit of `quantity.to_unit`.
        percent: of one of its nodes, of the resource of which it holds most; 0 if it has none.
    """

    reservation: Reservation
    held: Mapping[str, int]
    percent: int


async def show(client: Client, selection: Selection, form: Report) -> None:
    """Print what each one that is meant holds now, those first that hold most of their node."""
    async with patience("Asking what is held"):
        active = [each async for each in client.list(selection)]
        names = sorted({part.node for each in active for part in each.placements})
        nodes = {each.node: each async for each in client.capacity.nodes(names)} if names else {}
    holdings = [_holding(each, nodes) for each in active]
    holdings.sort(key=lambda each: (-each.percent, each.reservation.id))
    if form is not Report.TABLE:
        output.document({"reservations": [_shown(each) for each in holdings]}, form)
    elif holdings:
        table.show(("NAME", "NODE", "OF ITS NODE", "HOLDS", "ENDS IN"), map(_row, holdings))
    else:
        failure.tell("nothing is held")


def _holding(reservation: Reservation, nodes: Mapping[str, NodeCapacity]) -> _Holding:
    slot = {
        name: quantity.amount(name, text)
        for name, text in sorted(reservation.spec.resources.items())
    }
    left = reservation.spec.slots - len(reservation.claims)
    held = {name: left * amount for name, amount in slot.items()}
    # The API does not say which part a claim is of: a part holds at most what is left.
    shares = [0]
    for part in reservation.placements:
        resources = nodes[part.node].resources if part.node in nodes else {}
        for name, amount in slot.items():
            if name in resources:
                total = quantity.amount(name, resources[name].allocatable)
                most = min(part.slots, left) * amount
                shares.append(_PERCENT * most // total if total else 0)
    return _Holding(reservation, held, max(shares))


def _row(holding: _Holding) -> Row:
    share: AnyCell = f"{holding.percent}%"
    if sys.stdout.isatty():
        share = [*bar(_PERCENT, 0, holding.percent, _BAR), table.Cell(f" {holding.percent}%")]
    reservation = holding.reservation
    return (
        words.short_name(reservation),
        words.node(reservation),
        share,
        ", ".join(f"{name} {quantity.show(name, each)}" for name, each in holding.held.items()),
        words.ends_in(reservation, datetime.now(UTC)),
    )


def _shown(holding: _Holding) -> dict[str, object]:
    return {
        "name": holding.reservation.name,
        "id": holding.reservation.id,
        "placements": [part._asdict() for part in holding.reservation.placements],
        "percentOfNode": holding.percent,
        "held": {name: quantity.show(name, each) for name, each in holding.held.items()},
    }
