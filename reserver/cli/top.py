"""`reserver top`: capacity that is used, held and free on nodes, and quotas."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from reserver.cli import completion, failure, output, similar, table
from reserver.cli.connection import Session, run
from reserver.cli.failure import Refused, WrongUsage
from reserver.cli.formatting import NOTHING
from reserver.cli.help import App
from reserver.cli.output import Report, TableOutputOption
from reserver.cli.owner_flags import pair
from reserver.cli.table import AnyCell, Cell, Row, bar, bar_legend, fitting
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, NamespaceQuota, NodeCapacity, ResourceAmounts
from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import show_duration
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
    run(target, lambda session: _show_quotas(session.client, namespace, form))


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
    total, used, held, _ = _parsed(resource, amounts)
    return bar(total, used, held, width) if total or used or held else Cell("none", "dim")


def _free(resource: str, amounts: ResourceAmounts) -> Cell:
    total, used, held, free = _parsed(resource, amounts)
    text = f"{_short(resource, free)} of {_short(resource, total)}"
    return Cell(text if total or used or held else "", "red" if free < 0 else "")


def _parsed(resource: str, amounts: ResourceAmounts) -> list[int]:
    """Return what is allocatable, requested, held and free."""
    return [quantity.amount(resource, text) for text in amounts[:4]]


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
            texts: Sequence[str] = amounts[:4]
            if not is_exact:
                texts = [_short(resource, each) for each in _parsed(resource, amounts)]
            row = [node.node, resource, *texts]
            rows.append([*row, str(node.fits)] if with_fits else row)
    return [*titles, "FITS"] if with_fits else titles, rows


def _node_document(node: NodeCapacity, *, with_fits: bool) -> dict[str, object]:
    resources = {name: amounts._asdict() for name, amounts in sorted(node.resources.items())}
    fits = {"fits": node.fits} if with_fits else {}
    return {"node": node.node, "resources": resources, **fits}


async def _show_quotas(client: Client, namespace: str, form: Report) -> None:
    """Print the quota and its use for a namespace, or for each if it is empty."""
    async with progress("Asking for quotas"):
        found = [each async for each in client.capacity.quotas(namespace)]
    titles = ("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD")
    rows = [row for each in found for row in _quota_rows(each)]
    if form is Report.CSV:
        output.csv(titles, table.texts(rows))
    elif form is not Report.TABLE:
        output.document({"quotas": list(map(quota_document, found))}, form)
    elif found:
        table.show(titles, rows)
    else:
        failure.report(f"no quota limits {namespace or 'any namespace'}")


def _quota_rows(quota: NamespaceQuota) -> Iterator[Row]:
    """Yield each limit and its use, as `kubectl describe quota` does."""
    pending = {"reservations": f"{quota.pending} pending"} if quota.pending else {}
    shares = {name: f"{share:.0%}" for name, share in _shares(quota).items()}
    for counted in sorted(quota.hard.keys() | quota.used.keys() | pending.keys()):
        used = [each[counted] for each in (quota.used, pending, shares) if counted in each]
        home, said = quota.namespace or "(all tenants)", ", ".join(used) or NOTHING
        yield home, quota.name, counted, said, quota.hard.get(counted, NOTHING)
    for rule, limit in _quota_rules(quota).items():
        yield quota.namespace, quota.name, rule, NOTHING, limit


def _shares(quota: NamespaceQuota) -> dict[str, float]:
    """Return how much of each limit of the ceiling is used."""
    limits = sorted(quota.hard.items()) if not quota.namespace else ()
    used = {name: quantity.parse(quota.used.get(name, "0")) for name, _ in limits}
    return {name: round(used[name] / (quantity.parse(limit) or 1), 4) for name, limit in limits}


def _quota_rules(quota: NamespaceQuota) -> Mapping[str, str]:
    """Return the other limits, as a ReservationQuota's spec names them."""
    rules = {} if quota.max_ttl is None else {"maxTTL": show_duration(quota.max_ttl)}
    if quota.forbids_node_names:
        rules["nodeNames"] = "Forbidden"
    if quota.forbids_firm_holds:
        rules["firmHolds"] = "Forbidden"
    return rules


def quota_document(quota: NamespaceQuota) -> dict[str, Any]:
    """Return a quota as a program reads it."""
    return {
        "namespace": quota.namespace,
        "name": quota.name,
        "hard": dict(sorted(quota.hard.items())),
        "used": dict(sorted(quota.used.items())),
        "pending": quota.pending,
        **({"share": shares} if (shares := _shares(quota)) else {}),
        **_quota_rules(quota),
    }
