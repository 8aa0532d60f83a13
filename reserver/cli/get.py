"""`reserver get`, `describe` and `watch`: what is reserved, and each change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output, OutputOption, taking
from reserver.cli.selecting import (
    AllNamespacesOption,
    Chosen,
    NamesArgument,
    NamespaceOption,
    NodeOption,
    OwnerOption,
    PhaseOption,
    SelectorOption,
    check_namespaces,
)
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session


@taking
def get(
    target: Target,
    names: NamesArgument = None,
    node: NodeOption = "",
    owner: OwnerOption = "",
    namespace: NamespaceOption = "",
    phase: PhaseOption = None,
    selector: SelectorOption = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")
    ] = False,
    past: Annotated[
        bool, typer.Option("--all", help="Also what became of those that are over.")
    ] = False,
    all_namespaces: AllNamespacesOption = False,
    field_selector: Annotated[
        str,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Those whose fields are so, as `-o json` prints them: status.phase=Active; also "
            "with !=, and several with commas.",
            rich_help_panel="Which ones",
        ),
    ] = "",
    sort_by: Annotated[
        str, typer.Option(metavar="FIELD", help="In the order of a field, such as spec.expiresAt.")
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List reservations: all, those that options mean, or those of some names.

    Those of all namespaces are listed unless -n names one.

    Exit status: 0 listed; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.

    Examples:
        reserver get
        reserver get -n shop --phase Pending
        reserver get web-1 -n shop -o yaml
        reserver get --field-selector spec.policy=Require --sort-by spec.expiresAt
        reserver get --owner app=web -w
    """
    chosen = Chosen(
        node=node,
        owner=owner,
        namespace=namespace,
        phases=tuple(phase or ()),
        labels=selector,
    )
    lists = bool(field_selector or sort_by)
    try:
        check_namespaces(namespace, all_namespaces=all_namespaces)
        if names and (replace(chosen, namespace="").is_narrow or watch or lists):
            raise Failed(Status.USAGE, "NAME: give names (and -n), or filters, not both")
        if watch and lists:
            problem = "--field-selector, --sort-by: are not for --watch"
            raise Failed(Status.USAGE, f"{problem}; leave one of them out")
        if past and (names or watch or lists or replace(chosen, namespace="").is_narrow):
            problem = "--all: goes with --namespace and --output only"
            raise Failed(Status.USAGE, f"{problem}; reserver history shows those of a name")
    except Failed as exc:
        failure.end(exc)

    async def work(session: Session) -> None:
        from reserver.cli import history_view, listing

        selection = chosen.selection(session.namespace)
        if past:
            await history_view.show_all(session.client, namespace, output)
        elif names:
            await listing.show_named(session.client, names, selection, output)
        elif watch:
            await listing.follow(session.client, selection, output)
        else:
            await listing.show_all(session.client, selection, output, field_selector, sort_by)

    run(target, work)


@taking
def describe(
    target: Target,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="Names or ids.", autocompletion=completion.reservations
        ),
    ],
    namespace: NamespaceOption = "",
) -> None:
    """Describe reservations in full, for a person.

    Exit status: 0 told; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.

    Examples:
        reserver describe web-1
        reserver describe reserver-system/reservations/web-1
    """

    async def tell(session: Session) -> None:
        from reserver.cli import description

        selection = Chosen(namespace=namespace).selection(session.namespace)
        await description.show(session.client, names, selection)

    run(target, tell)


@taking
def watch(
    target: Target,
    node: NodeOption = "",
    owner: OwnerOption = "",
    namespace: NamespaceOption = "",
    phase: PhaseOption = None,
    selector: SelectorOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Print a line for each reservation that is there, and for each change from then on.

    A connection that breaks is resumed, and no change is left out. `-o json` prints one object a
    line, `{"change", "reservation"}`. It ends with Ctrl-C, and with 1 or 3 as `reserver get` does.

    Examples:
        reserver watch --node worker-3
        reserver watch -n shop -o json
    """
    chosen = Chosen(
        node=node,
        owner=owner,
        namespace=namespace,
        phases=tuple(phase or ()),
        labels=selector,
    )

    async def stream(session: Session) -> None:
        from reserver.cli import listing

        await listing.stream(session.client, chosen.selection(session.namespace), output)

    run(target, stream)
