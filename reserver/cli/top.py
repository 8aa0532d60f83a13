"""`reserver top`: capacity that is used, held and free on nodes, and quotas."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from reserver.cli import completion, output, quota_table, similar, table
from reserver.cli.connection import Session, run
from reserver.cli.failure import Refused, WrongUsage
from reserver.cli.help import App
from reserver.cli.output import Report, TableOutputOption
from reserver.cli.owner_flags import pair
from reserver.cli.table import AnyCell, Cell, Row, bar, bar_legend, fitting
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, NodeCapacity, ResourceAmounts
from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.settings.flags import flag

app = App()

_RESOURCES = ("cpu", "memory")
_NONE = ResourceAmounts("0", "0", "0", "0")
_EVERY_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"


@app.callback()
def _top() -> None:
    """Show used, held and free room, and quotas.

    Examples:
        reserver top nodes
        reserver top quotas -n shop
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFlags:
    """The flags of `top nodes`."""

    resources: tuple[str, ...] = flag(
        "Show this resource instead of cpu and memory.",
        default=(),
        metavar="NAME",
        complete=completion.resources,
    )
    slots: tuple[str, ...] = flag(
        "Show how many slots of this size fit: cpu=2,memory=4Gi.",
        default=(),
        metavar="NAME=QUANTITY",
    )
    watch: bool = flag("Show it again every two seconds, until Ctrl-C.", default=False, short="-w")


@app.command()
def nodes(
    target: Target,
    flags: TopFlags,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NODE",
            help="Names of nodes. Default: all nodes.",
            autocompletion=completion.nodes,
        ),
    ] = None,
    form: TableOutputOption = Report.TABLE,
) -> None:
    """Show each node's resources: used by pods, held by reservations, free.

    Exit status: 0 shown; 1 a node does not exist, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver top nodes
        reserver top nodes worker-1 --slot cpu=2 --slot memory=4Gi
        reserver top nodes --resource nvidia.com/gpu -w
    """
    slot, shown = _slot(flags.slots), flags.resources or _RESOURCES

    async def work(session: Session) -> None:
        while True:
            await _show_nodes(session.client, names or [], shown, slot, form, clear=flags.watch)
            if not flags.watch:
                return
            await asyncio.sleep(_EVERY_S)

    run(target, work)


@app.command()
def quotas(
    target: Target,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Only this namespace.")
    ] = "",
    form: TableOutputOption = Report.TABLE,
) -> None:
    """Show the quota of each namespace, and how much its reservations hold.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver top quotas -n shop
    """
    run(target, lambda session: quota_table.show(session.client, namespace, form))


def _slot(given: Sequence[str]) -> dict[str, str]:
    """Return the resources of one slot from `--slot`, which may have several with commas."""
    each = [part for text in given for part in text.split(",")]
    wanted = dict(pair("--slot", text, "cpu=2") for text in each)
    for name, text in wanted.items():
        try:
            quantity.amount(name, text)
        except InvalidInput as exc:
            raise WrongUsage(f"--slot: {name}: {exc}") from exc
    return wanted


async def _show_nodes(
    client: Client,
    names: Sequence[str],
    resources: Sequence[str],
    slot: Mapping[str, str],
    form: Report,
    *,
    clear: bool,
) -> None:
    """Print the capacity of nodes.

    Args:
        names: the nodes to print; all if empty.
        resources: the resources of the table.
        slot: the resources of a slot to count; empty for none.
        clear: replace the screen of a terminal.
    """
    async with progress("Asking for the capacity of nodes"):
        found = [each async for each in client.capacity.nodes(names, slot)]
    for name in resources:
        if found and not names and not any(name in each.resources for each in found):
            question = await similar.resource(client, name, "see `reserver top nodes -o json`")
            raise Refused(f"--resource: no node offers {name!r}; {question}")
    if clear and sys.stdout.isatty():
        typer.echo(_CLEAR, nl=False)
    if form is Report.CSV:
        output.csv(*_listed(found, resources, with_fits=bool(slot), is_exact=True))
    elif form is not Report.TABLE:
        documents = [_node_document(each, with_fits=bool(slot)) for each in found]
        output.document({"nodes": documents}, form)
    elif sys.stdout.isatty():
        _draw(found, resources, with_fits=bool(slot))
    elif found:
        table.show(*_listed(found, resources, with_fits=bool(slot), is_exact=False))
    if missing := set(names) - {each.node for each in found}:
        questions = [(name, await similar.node(client, name)) for name in sorted(missing)]
        lines = ["; ".join(filter(None, (f"there is no node {n}", q))) for n, q in questions]
        raise Refused("\n".join(lines))


def _draw(nodes: Sequence[NodeCapacity], resources: Sequence[str], *, with_fits: bool) -> None:
    """Draw a bar for each resource of a node, and the legend."""
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
    bar_legend()


def _bar(resource: str, amounts: ResourceAmounts, width: int) -> AnyCell:
    texts = (amounts.allocatable, amounts.requested, amounts.held)
    total, used, held = (quantity.amount(resource, text) for text in texts)
    return bar(total, used, held, width) if total or used or held else Cell("none", "dim")


def _free(resource: str, amounts: ResourceAmounts) -> Cell:
    texts = (amounts.allocatable, amounts.requested, amounts.held, amounts.free)
    total, used, held, free = (quantity.amount(resource, text) for text in texts)
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


def _listed(
    nodes: Sequence[NodeCapacity], resources: Sequence[str], *, with_fits: bool, is_exact: bool
) -> tuple[list[str], list[list[str]]]:
    """Return titles, and one resource of a node per row; amounts that are not exact are short."""
    titles = ["NODE", "RESOURCE", "ALLOCATABLE", "USED", "HELD", "FREE"]
    rows: list[list[str]] = []
    for node in nodes:
        for resource in resources:
            amounts = node.resources.get(resource, _NONE)
            texts = [amounts.allocatable, amounts.requested, amounts.held, amounts.free]
            if not is_exact:
                texts = [_short(resource, quantity.amount(resource, each)) for each in texts]
            row = [node.node, resource, *texts]
            rows.append([*row, str(node.fits)] if with_fits else row)
    return [*titles, "FITS"] if with_fits else titles, rows


def _node_document(node: NodeCapacity, *, with_fits: bool) -> dict[str, object]:
    resources = {name: amounts._asdict() for name, amounts in sorted(node.resources.items())}
    fits = {"fits": node.fits} if with_fits else {}
    return {"node": node.node, "resources": resources, **fits}
