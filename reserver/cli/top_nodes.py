"""Nodes as `reserver top nodes` shows them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from reserver.cli import output, table
from reserver.cli.bar import bar, fitting, legend
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Report
from reserver.cli.patience import patience
from reserver.cli.table import AnyCell, Cell, Row
from reserver.client import Amounts, Client, NodeCapacity
from reserver.cluster import quantity

_NONE = Amounts("0", "0", "0", "0")


async def show(
    client: Client,
    names: Sequence[str],
    resources: Sequence[str],
    slot: Mapping[str, str],
    form: Report,
) -> None:
    """Print the capacity of nodes.

    Args:
        client: asks reserver.
        names: only these; all if it is empty.
        resources: the ones that a table shows.
        slot: what one slot takes whose number to say; empty for none.
        form: how to print it.

    Raises:
        Failed: some of the nodes are not there.
    """
    async with patience("Asking for the capacity of nodes"):
        found = [each async for each in client.capacity.nodes(names, slot)]
    if form is not Report.TABLE:
        output.document({"nodes": [_shown(each, with_fits=bool(slot)) for each in found]}, form)
    elif sys.stdout.isatty():
        _draw(found, resources, with_fits=bool(slot))
    elif found:
        _list(found, resources, with_fits=bool(slot))
    if missing := set(names) - {each.node for each in found}:
        raise Failed(Status.REFUSED, "\n".join(f"there is no node {m}" for m in sorted(missing)))


def _draw(nodes: Sequence[NodeCapacity], resources: Sequence[str], *, with_fits: bool) -> None:
    """Draw a bar for each resource of a node, and what the colours mean."""
    free = [[_free(each, n.resources.get(each, _NONE)) for each in resources] for n in nodes]
    texts = [
        [node.node, *(cell.text for cell in row)] for node, row in zip(nodes, free, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    width = fitting(len(resources), [*widths, *[len("FITS")] * with_fits])
    rows: list[Row] = []
    for node, cells in zip(nodes, free, strict=True):
        row: list[AnyCell] = [node.node]
        for resource, cell in zip(resources, cells, strict=True):
            row += [_bar(resource, node.resources.get(resource, _NONE), width), cell]
        rows.append([*row, str(node.fits)] if with_fits else row)
    titles = ["NODE"]
    for resource in resources:
        titles += [resource.upper(), "FREE"]
    right = {"FREE", "FITS"}
    table.show([*titles, "FITS"] if with_fits else titles, rows, right=right)
    legend()


def _bar(resource: str, amounts: Amounts, width: int) -> AnyCell:
    total, used, held, _ = (quantity.amount(resource, text) for text in amounts)
    return bar(total, used, held, width) if total or used or held else Cell("none", "dim")


def _free(resource: str, amounts: Amounts) -> Cell:
    total, used, held, free = (quantity.amount(resource, text) for text in amounts)
    text = f"{_short(resource, free)} of {_short(resource, total)}"
    return Cell(text if total or used or held else "", "red" if free < 0 else "")


def _short(resource: str, amount: int) -> str:
    """Return an amount rounded to fit into a column."""
    exact = quantity.show(resource, amount)
    if resource == "cpu" or len(exact) < 8:  # noqa: PLR2004 - such as 4096Mi
        return exact
    for power, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if abs(amount) >= 1 << power:
            return f"{amount / (1 << power):.1f}{suffix}"
    return exact


def _list(nodes: Sequence[NodeCapacity], resources: Sequence[str], *, with_fits: bool) -> None:
    """List one resource of a node per line, with exact amounts."""
    titles = ["NODE", "RESOURCE", "ALLOCATABLE", "USED", "HELD", "FREE"]
    rows: list[Row] = []
    for node in nodes:
        for resource in resources:
            row = [node.node, resource, *node.resources.get(resource, _NONE)]
            rows.append([*row, str(node.fits)] if with_fits else row)
    table.show([*titles, "FITS"] if with_fits else titles, rows)


def _shown(node: NodeCapacity, *, with_fits: bool) -> dict[str, object]:
    resources = {name: amounts._asdict() for name, amounts in sorted(node.resources.items())}
    fits = {"fits": node.fits} if with_fits else {}
    return {"node": node.node, "resources": resources, **fits}
