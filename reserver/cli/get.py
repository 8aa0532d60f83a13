"""`reserver get`, `describe` and `watch`: what is reserved, and each change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
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


WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")
]
PastOption = Annotated[bool, typer.Option("--all", help="Also list reservations that are over.")]
FieldSelectorOption = Annotated[
    str,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Reservations with these fields, as `-o json` prints them: status.phase=Active; also "
        "with !=, and several with commas.",
        rich_help_panel="Which ones",
    ),
]
SortByOption = Annotated[
    str,
    typer.Option(
        metavar="FIELD",
        help="Sort by a field, such as spec.expiresAt.",
        autocompletion=completion.fields,
    ),
]


@taking
def get(
    target: Target,
    names: NamesArgument = None,
    node: NodeOption = "",
    owner: OwnerOption = "",
    namespace: NamespaceOption = "",
    phase: PhaseOption = None,
    selector: SelectorOption = "",
    watch: WatchOption = False,
    past: PastOption = False,
    all_namespaces: AllNamespacesOption = False,
    field_selector: FieldSelectorOption = "",
    sort_by: SortByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List reservations: all, by name, or by filter.

    It lists all namespaces unless -n names one.

    Exit status: 0 listed; 1 some name is not there, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver get
        reserver get -n shop --phase Pending
        reserver get web-1 -n shop -o yaml
        reserver get --field-selector spec.policy=Require --sort-by spec.expiresAt
        reserver get --owner app=web -w
    """
    phases = tuple(phase or ())
    chosen = Chosen(node=node, owner=owner, namespace=namespace, phases=phases, labels=selector)
    asked = _Asked(
        chosen, tuple(names or ()), field_selector, sort_by, is_watch=watch, is_past=past
    )
    try:
        check_namespaces(namespace, all_namespaces=all_namespaces)
        asked.check()
    except Failed as exc:
        failure.end(exc)
    run(target, partial(_list, asked=asked, output=output))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What `get` is asked for.

    Attributes:
        chosen: those that options mean.
        names: those of names.
        field_selector: those whose fields are so.
        sort_by: in the order of this field.
        is_watch: as they change.
        is_past: also those that are over.
    """

    chosen: Chosen
    names: tuple[str, ...]
    field_selector: str
    sort_by: str
    is_watch: bool
    is_past: bool

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            Failed: two options exclude each other.
        """
        is_listed = bool(self.field_selector or self.sort_by)
        is_narrow = replace(self.chosen, namespace="").is_narrow
        if self.names and (is_narrow or self.is_watch or is_listed):
            raise Failed(Status.USAGE, "NAME: give names (and -n), or filters, not both")
        if self.is_watch and is_listed:
            problem = "--field-selector, --sort-by: are not for --watch"
            raise Failed(Status.USAGE, f"{problem}; leave one of them out")
        if self.is_past and (self.names or self.is_watch or is_listed or is_narrow):
            problem = "--all: goes with --namespace and --output only"
            raise Failed(Status.USAGE, f"{problem}; reserver history shows those of a name")


async def _list(session: Session, asked: _Asked, output: Output) -> None:
    from reserver.cli import history_view, listing

    selection = asked.chosen.selection(session.namespace)
    if asked.is_past:
        await history_view.show_all(session.client, asked.chosen.namespace, output)
    elif asked.names:
        await listing.show_named(session.client, asked.names, selection, output)
    elif asked.is_watch:
        await listing.follow(session.client, selection, output)
    else:
        by = (asked.field_selector, asked.sort_by)
        await listing.show_all(session.client, selection, output, *by)


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
    """Show all details of reservations.

    Exit status: 0 shown; 1 some name is not there, or refused; 2 wrong usage; 3 Reserver cannot be
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
    """Print each reservation, and then each change as it happens.

    A broken connection is resumed, and no change is missed. `-o json` prints one object a line,
    `{"change", "reservation"}`. Stop it with Ctrl-C. It exits with 1 or 3 as `reserver get` does.

    Examples:
        reserver watch --node worker-3
        reserver watch -n shop -o json
    """
    phases = tuple(phase or ())
    chosen = Chosen(node=node, owner=owner, namespace=namespace, phases=phases, labels=selector)

    async def stream(session: Session) -> None:
        from reserver.cli import listing

        await listing.stream(session.client, chosen.selection(session.namespace), output)

    run(target, stream)
