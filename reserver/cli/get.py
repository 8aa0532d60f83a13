"""`reserver get`, `describe` and `watch`: what is reserved, now and as it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import Target
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Output, OutputOption, connecting
from reserver.cli.selecting import (
    NamesArgument,
    NodeOption,
    OwnerNamespaceOption,
    OwnerOption,
    PhaseOption,
    selection,
)

if TYPE_CHECKING:
    from reserver.cli.connect import Session
    from reserver.client import Selection


@connecting
def get(
    target: Target,
    names: NamesArgument = None,
    node: NodeOption = "",
    owner: OwnerOption = "",
    owner_namespace: OwnerNamespaceOption = "",
    phase: PhaseOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List reservations: all, those that options mean, or those of some names.

    Exit status: 0 listed; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.
    """
    try:
        chosen = selection(node, owner, owner_namespace, phase)
        if names and (node or owner or owner_namespace or phase or watch):
            raise Failed(Status.USAGE, "NAME: names say all; leave out the other options")
    except Failed as exc:
        failure.end(exc)
    target.run(lambda session: _get(session, names or [], chosen, output, watch=watch))


async def _get(
    session: Session, names: list[str], chosen: Selection, output: Output, *, watch: bool
) -> None:
    from reserver.cli import listing

    if names:
        await listing.show_named(session.client, names, output)
    elif watch:
        await listing.follow(session.client, chosen, output)
    else:
        await listing.show_all(session.client, chosen, output)


@connecting
def describe(
    target: Target,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="Names or ids.", autocompletion=completion.reservations
        ),
    ],
) -> None:
    """Tell all about reservations, for a person.

    Exit status: 0 told; 1 some name is not there, or refused; 2 wrong usage; 3 reserver cannot be
    reached.
    """

    async def tell(session: Session) -> None:
        from reserver.cli import description

        await description.show(session.client, names)

    target.run(tell)


@connecting
def watch(
    target: Target,
    node: NodeOption = "",
    owner: OwnerOption = "",
    owner_namespace: OwnerNamespaceOption = "",
    phase: PhaseOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print a line for each reservation that is there, and for each change from then on.

    A connection that breaks is resumed, and no change is left out. `-o json` prints one object a
    line, `{"change", "reservation"}`. It ends with Ctrl-C, and with 1 or 3 as `reserver get` does.
    """
    try:
        chosen = selection(node, owner, owner_namespace, phase)
    except Failed as exc:
        failure.end(exc)

    async def stream(session: Session) -> None:
        from reserver.cli import listing

        await listing.stream(session.client, chosen, output)

    target.run(stream)
