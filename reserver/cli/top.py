"""`reserver top`: what is used, held and free, by node and by reservation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed
from reserver.cli.help import App
from reserver.cli.options import Report, ReportOption, taking
from reserver.cli.selecting import Chosen, NamespaceOption, SelectorOption
from reserver.cli.target import Target
from reserver.reservations.terms import Phase

if TYPE_CHECKING:
    from reserver.cli.connect import Session

app = App()

_RESOURCES = ("cpu", "memory")


@app.callback()
def _top() -> None:
    """Show what is used, held and free.

    Examples:
        reserver top nodes
        reserver top reservations -n shop
    """


@app.command()
@taking
def nodes(
    target: Target,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NODE",
            help="Names of nodes. Default: all nodes.",
            autocompletion=completion.nodes,
            show_default=False,
        ),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show this resource instead of cpu and memory. May be given more than once.",
            autocompletion=completion.resources,
        ),
    ] = None,
    slot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=QUANTITY",
            help="Show how many slots of this size fit. May be given more than once.",
        ),
    ] = None,
    output: ReportOption = Report.TABLE,
) -> None:
    """Show each node's resources: used by pods, held by reservations, free.

    Exit status: 0 shown; 1 some node is not there, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver top nodes
        reserver top nodes worker-1 --slot cpu=2 --slot memory=4Gi
        reserver top nodes --resource nvidia.com/gpu
    """
    from reserver.cli.spec_flags import pair

    try:
        wanted = dict(pair("--slot", text, "cpu=2") for text in slot or ())
    except Failed as exc:
        failure.end(exc)

    async def ask(session: Session) -> None:
        from reserver.cli import top_nodes

        shown = tuple(resource or _RESOURCES)
        await top_nodes.show(session.client, names or [], shown, wanted, output)

    run(target, ask)


@app.command()
@taking
def quotas(
    target: Target,
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only this namespace."),
    ] = "",
    output: ReportOption = Report.TABLE,
) -> None:
    """Show the quota of each namespace, and how much its reservations hold.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver top quotas -n shop
    """

    async def ask(session: Session) -> None:
        from reserver.cli import top_quotas

        await top_quotas.show(session.client, namespace, output)

    run(target, ask)


@app.command()
@taking
def reservations(
    target: Target,
    namespace: NamespaceOption = "",
    selector: SelectorOption = "",
    output: ReportOption = Report.TABLE,
) -> None:
    """Show what each reservation holds, largest share of its node first.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver top reservations
        reserver top reservations -l team=shop
    """

    async def ask(session: Session) -> None:
        from reserver.cli import top_reservations

        chosen = Chosen(namespace=namespace, phases=(Phase.ACTIVE,), labels=selector)
        selection = chosen.selection(session.namespace)
        await top_reservations.show(session.client, selection, output)

    run(target, ask)
