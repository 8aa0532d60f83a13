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
    Chosen,
    NamesArgument,
    NamespaceOption,
    NodeOption,
    OwnerOption,
    PhaseOption,
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
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")
    ] = False,
    past: Annotated[
        bool, typer.Option("--all", help="Also what became of those that are over.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List reservations: all, those that options mean, or those of some names.

    Exit status: 0 listed; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.
    """
    chosen = Chosen(node=node, owner=owner, namespace=namespace, phases=tuple(phase or ()))
    if names and (chosen.is_narrow or watch):
        failure.end(Failed(Status.USAGE, "NAME: give names or filters, not both"))
    if past and (names or watch or replace(chosen, namespace="").is_narrow):
        remedy = "reserver history shows those of a name"
        failure.end(
            Failed(Status.USAGE, f"--all: goes with --namespace and --output only; {remedy}")
        )
    if past:
        run(target, lambda session: _get_all(session, namespace, output))
        return
    run(target, lambda session: _get(session, names or [], chosen, output, watch=watch))


async def _get_all(session: Session, namespace: str, output: Output) -> None:
    from reserver.cli import history_view

    await history_view.show_all(session.client, namespace, output)


async def _get(
    session: Session, names: list[str], chosen: Chosen, output: Output, *, watch: bool
) -> None:
    from reserver.cli import listing

    selection = chosen.selection(session.namespace)
    if names:
        await listing.show_named(session.client, names, output)
    elif watch:
        await listing.follow(session.client, selection, output)
    else:
        await listing.show_all(session.client, selection, output)


@taking
def describe(
    target: Target,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="Names or ids.", autocompletion=completion.reservations
        ),
    ],
) -> None:
    """Describe reservations in full, for a person.

    Exit status: 0 told; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.
    """

    async def tell(session: Session) -> None:
        from reserver.cli import description

        await description.show(session.client, names)

    run(target, tell)


@taking
def watch(
    target: Target,
    node: NodeOption = "",
    owner: OwnerOption = "",
    namespace: NamespaceOption = "",
    phase: PhaseOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print a line for each reservation that is there, and for each change from then on.

    A connection that breaks is resumed, and no change is left out. `-o json` prints one object a
    line, `{"change", "reservation"}`. It ends with Ctrl-C, and with 1 or 3 as `reserver get` does.
    """
    chosen = Chosen(node=node, owner=owner, namespace=namespace, phases=tuple(phase or ()))

    async def stream(session: Session) -> None:
        from reserver.cli import listing

        await listing.stream(session.client, chosen.selection(session.namespace), output)

    run(target, stream)
